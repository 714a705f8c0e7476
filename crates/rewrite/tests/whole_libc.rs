//! All of the C library and the dynamic linker of this very process, patched at every site at once; then put to work.
//!
//! Without the test harness: while code is patched, there must be only one thread.

#[path = "support/machine.rs"]
mod machine;
mod support;

use outlast_rewrite::{plan, BranchMap, Code, Patch, Refusal, StubAreas, WriteStrategy, AREA_LEN};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;

/// Calls that give a thread another stack, or that only the kernel may return from: clone, fork, vfork, clone3, rt_sigreturn.
/// The gate of the tests cannot serve them.
const NOT_FOR_THE_TEST: [u32; 5] = [56, 57, 58, 435, 15];

struct Mapping {
    start: u64,
    end: u64,
    executable: bool,
    path: String,
}

fn mappings() -> Vec<Mapping> {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap();
    text.lines()
        .map(|line| {
            let mut words = line.split_ascii_whitespace();
            let (start, end) = words.next().unwrap().split_once('-').unwrap();
            Mapping {
                start: u64::from_str_radix(start, 16).unwrap(),
                end: u64::from_str_radix(end, 16).unwrap(),
                executable: words.next().unwrap().contains('x'),
                path: words.nth(3).unwrap_or("").to_string(),
            }
        })
        .collect()
}

/// The sites of a mapped file, from a straight decoding of the file.
fn sites(mapping: &Mapping, code: &Code) -> Vec<u64> {
    let binary = support::Binary::open(mapping.path.clone().into()).unwrap();
    let text = &binary.texts[0];
    // The mapping begins at the page of the segment's first byte.
    let base = mapping.start - (text.address & !0xfff);
    let served = |site: &u64| {
        let number = code.at(site - 5, 5).filter(|bytes| bytes[0] == 0xb8);
        !number.is_some_and(|bytes| NOT_FOR_THE_TEST.contains(&u32::from_le_bytes(bytes[1..].try_into().unwrap())))
    };
    text.sites().into_iter().map(|site| base + site).filter(served).collect()
}

fn protect(mapping: &Mapping, prot: i32) {
    // SAFETY: more permissions, or those that it had.
    let result = unsafe { libc::mprotect(mapping.start as *mut _, (mapping.end - mapping.start) as usize, prot) };
    assert_eq!(result, 0);
}

/// Everything that a program does: files, pipes, sockets, waiting, memory, threads, children. Returns what it saw.
fn work() -> Vec<String> {
    let mut seen = Vec::new();
    let path = std::env::temp_dir().join(format!("outlast-rewrite-{}", std::process::id()));
    let mut file = std::fs::File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
    for line in 0..100 {
        writeln!(file, "line {line}").unwrap();
    }
    file.seek(SeekFrom::Start(0)).unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    seen.push(format!("{} {:?}", text.len(), std::fs::metadata(&path).unwrap().len()));
    std::fs::remove_file(&path).unwrap();
    seen.push(format!("{:?}", std::fs::File::open(&path).unwrap_err().raw_os_error()));

    let (mut reader, mut writer) = std::os::unix::net::UnixStream::pair().unwrap();
    let pinger = std::thread::spawn(move || (0..500u32).for_each(|n| writer.write_all(&n.to_le_bytes()).unwrap()));
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    pinger.join().unwrap();
    seen.push(format!("{}", bytes.len()));

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = std::thread::spawn(move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(b"hello").unwrap();
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).unwrap();
        answer
    });
    let (mut stream, _) = listener.accept().unwrap();
    let mut question = [0; 5];
    stream.read_exact(&mut question).unwrap();
    stream.write_all(&question).unwrap();
    seen.push(format!("{:?}", client.join().unwrap()));

    let mut poll = [libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
    // SAFETY: one valid entry.
    seen.push(format!("{}", unsafe { libc::poll(poll.as_mut_ptr(), 1, 1000) }));
    let shared = std::sync::Arc::new((std::sync::Mutex::new(0u32), std::sync::Condvar::new()));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let shared = shared.clone();
            std::thread::spawn(move || {
                for _ in 0..1000 {
                    *shared.0.lock().unwrap() += 1;
                    shared.1.notify_all();
                }
            })
        })
        .collect();
    let mut count = shared.0.lock().unwrap();
    while *count < 4000 {
        count = shared.1.wait_timeout(count, std::time::Duration::from_millis(50)).unwrap().0;
    }
    seen.push(format!("{count}"));
    drop(count);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    std::thread::sleep(std::time::Duration::from_millis(1));
    let big = vec![1u8; 8 << 20];
    seen.push(format!("{}", big.iter().map(|byte| *byte as u64).sum::<u64>()));
    let child = std::process::Command::new("/bin/echo").arg("from a child").output().unwrap();
    seen.push(format!("{:?}", child));
    seen
}

fn main() {
    let expected = work();
    let all = mappings();
    let texts: Vec<_> = all
        .iter()
        .filter(|mapping| {
            mapping.executable && (mapping.path.contains("/libc.so") || mapping.path.contains("/ld-linux"))
        })
        .collect();
    assert_eq!(texts.len(), 2, "one segment each of the C library and the dynamic linker");
    let mut areas = Box::new(StubAreas::<4>::new());
    let mut patches: Vec<Patch> = Vec::new();
    let mut originals = Vec::new();
    for mapping in &texts {
        // SAFETY: mapped readable for the whole life of the process.
        let bytes =
            unsafe { std::slice::from_raw_parts(mapping.start as *const u8, (mapping.end - mapping.start) as usize) };
        let code = Code { address: mapping.start, bytes };
        originals.push((code, bytes.to_vec()));
        let sites = sites(mapping, &code);
        let mut bits = vec![0; BranchMap::words(bytes.len())];
        let map = BranchMap::new(code, &mut bits).unwrap();
        for site in &sites {
            let Ok(plan) = plan(&map, *site, &|range| areas.conflicts(range)) else { continue };
            let stub = match areas.place(&plan) {
                Err(Refusal::Full) => {
                    let mapped = mappings();
                    let gaps = mapped.iter().map(|mapping| (mapping.start, mapping.end));
                    let gap = plan.reach().nearest_gap(plan.at(), gaps).unwrap();
                    let memory = machine::Memory::at(gap, AREA_LEN as usize);
                    assert!(areas.add(memory.address));
                    areas.place(&plan)
                }
                other => other,
            };
            patches.push(plan.link(stub.unwrap(), machine::gate()).unwrap());
        }
        assert!(patches.len() * 100 >= sites.len() * 90);
    }
    let parked = patches
        .iter()
        .filter(|patch| {
            let code = &originals.iter().find(|(code, _)| code.at(patch.at(), 1).is_some()).unwrap().0;
            patch.overwrite().strategy(code, false) == WriteStrategy::NeedsParkedThreads
        })
        .count();

    let writable = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    texts.iter().for_each(|mapping| protect(mapping, writable));
    for patch in &patches {
        // SAFETY: the only thread of this process is here, not in the C library.
        unsafe { machine::apply(patch) };
    }
    texts.iter().for_each(|mapping| protect(mapping, libc::PROT_READ | libc::PROT_EXEC));
    let before = machine::calls();
    for _ in 0..3 {
        assert_eq!(work(), expected);
    }
    let calls = machine::calls() - before;
    assert!(calls > 1000, "{calls} calls");

    texts.iter().for_each(|mapping| protect(mapping, writable));
    for patch in &patches {
        // SAFETY: as above: the threads of the work are gone.
        unsafe { machine::overwrite(&patch.undo()) };
    }
    texts.iter().for_each(|mapping| protect(mapping, libc::PROT_READ | libc::PROT_EXEC));
    for (code, original) in &originals {
        assert!(code.bytes == original, "the original bytes are back");
    }
    assert_eq!(work(), expected);
    println!(
        "whole_libc: {} sites patched ({parked} with parked threads), {calls} calls through the gate: ok",
        patches.len()
    );
}
