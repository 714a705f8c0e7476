//! A component that needs another one: journals over the RAM file system. Either dies, or both, and their clients see entries.

mod support;

use std::process::{Command, Stdio};
use std::time::Duration;

use outlast_glue_rt::{CallError, Channel, Handle, Spec, System};
use outlast_services::journal::FILES;
use outlast_services::stubs::{fs, journal};
use support::{alive, await_that, kill, kill_instance, start, stopped, while_killed, Chance};

const SERVICE: &str = env!("CARGO_BIN_EXE_outlast-service");

fn channel(handle: &Handle) -> Channel {
    handle.grant().expect("a channel").open().expect("a channel")
}

/// Journals, and the file system below; `fault`: an operation of the journals, a point and a file.
fn both(system: &mut System, faults: [&[String]; 2]) -> (Handle, Handle) {
    let spec = |name: &str, fault: &[String]| Spec {
        name: name.into(),
        program: SERVICE.into(),
        arguments: [&[name.to_string()], fault].concat(),
    };
    let files = system.start(spec("fs", faults[1])).expect("the component starts");
    let grants = vec![(FILES.to_string(), files.grant().expect("a channel"))];
    let journals = system.start_with(spec("journal", faults[0]), grants).expect("the component starts");
    (journals, files)
}

/// What a thread adds: who and which, and as many bytes as chance has it.
fn entry(chance: &mut Chance, thread: u64, number: u64) -> Vec<u8> {
    let mut entry = format!("{thread} {number} ").into_bytes();
    entry.resize(entry.len() + chance.below(600) as usize, b'a' + thread as u8);
    entry
}

fn all(client: &journal::Client, name: &[u8]) -> Vec<Vec<u8>> {
    let journal = client.journal_open(name).expect("there");
    let (count, _) = client.journal_read(journal, 0, 0).expect("there");
    let entries = (0..count).map(|number| client.journal_read(journal, number, 4096).expect("an entry").1).collect();
    client.journal_close(journal).expect("open");
    entries
}

#[test]
fn every_entry_is_there_once_and_in_order_while_the_journals_and_their_file_system_are_killed() {
    const THREADS: u64 = 6;
    const ENTRIES: u64 = 80;
    let mut chance = Chance::new();
    let (mut deaths, mut below, mut run) = (0, 0, 0);
    while deaths < 100 || below < 100 {
        run += 1;
        let mut system = System::new();
        let (journals, files) = both(&mut system, [&[], &[]]);
        let clients = [journal::Client::new(channel(&journals)), journal::Client::new(channel(&journals))];
        let names = [format!("one{run}").into_bytes(), format!("two{run}").into_bytes()];
        let mut killer = [chance.fork(), chance.fork()];
        let [first, second] = &mut killer;
        let work = |thread: u64, mut chance: Chance| {
            let client = &clients[thread as usize % 2];
            let open = names.each_ref().map(|name| client.journal_open(name).expect("a journal"));
            for number in 0..ENTRIES {
                let added = entry(&mut chance, thread, number);
                client.journal_append(open[(number % 2) as usize], &added).expect("an entry");
            }
            open.iter().for_each(|journal| assert_eq!(client.journal_close(*journal), Ok(0)));
        };
        let seeds: Vec<Chance> = (0..THREADS).map(|_| chance.fork()).collect();
        let ((_, kills_below), kills) = while_killed(&journals, first, || {
            while_killed(&files, second, || {
                std::thread::scope(|scope| {
                    for (thread, seed) in seeds.into_iter().enumerate() {
                        scope.spawn(move || work(thread as u64, seed));
                    }
                })
            })
        });
        println!("{kills} kills of the journals, {kills_below} of the file system");
        (deaths, below) = (deaths + kills, below + kills_below);
        let outside = fs::Client::new(channel(&files));
        for (at, name) in names.iter().enumerate() {
            let entries = all(&clients[0], name);
            let mut next = [at as u64; THREADS as usize];
            for entry in &entries {
                let text = String::from_utf8(entry.clone()).expect("text");
                let mut words = text.split(' ');
                let mut word = || words.next().and_then(|word| word.parse::<u64>().ok()).expect("a number");
                let (thread, number) = (word(), word());
                assert_eq!(number, next[thread as usize], "thread {thread}");
                next[thread as usize] += 2;
                assert!(words.next().expect("the rest").bytes().all(|byte| byte == b'a' + thread as u8));
            }
            assert_eq!(next, [ENTRIES + at as u64; THREADS as usize]);
            // What anybody sees who looks into the file.
            let (file, _) = outside.fs_split(0, name, 0).expect("a file");
            let whole = entries.concat();
            let mut seen = Vec::new();
            while seen.len() < whole.len() {
                let (_, piece, _) = outside.fs_read(file, 4096).expect("bytes");
                assert!(!piece.is_empty(), "too short");
                seen.extend(piece);
            }
            assert_eq!(&seen[..whole.len()], whole);
        }
    }
}

#[test]
fn what_a_dead_instance_had_open_in_another_component_is_closed_there() {
    let mut system = System::new();
    let (journals, files) = both(&mut system, [&[], &[]]);
    let client = journal::Client::new(channel(&journals));
    let open: Vec<u64> = (0..5).map(|at| client.journal_open(format!("{at}").as_bytes()).expect("a journal")).collect();
    // More than there are places for threads: each instance has some of its own.
    for death in 0..80 {
        kill_instance(&journals);
        for (at, journal) in open.iter().enumerate() {
            assert_eq!(client.journal_append(*journal, b"entry"), Ok(death), "journal {at}");
        }
        assert_eq!(files.descriptors(), open.len() as u32, "after {death} deaths");
    }
    assert_eq!(files.deaths().0, 0);
}

#[test]
fn who_takes_a_channel_over_from_the_dead_finds_nothing_of_theirs_nor_does_what_they_asked_for_happen() {
    use outlast_services::stubs::lock::Client;
    let mut system = System::new();
    let lock = start(&mut system, "lock");
    let grant = lock.grant().expect("a channel");
    let mut chance = Chance::new();
    // Of its threads one holds a lock, and others wait for it.
    for _ in 0..25 {
        let mut contenders = Command::new(env!("CARGO_BIN_EXE_lock-contenders"));
        contenders.args(["20", "1000000"]).stdout(Stdio::null());
        grant.again().expect("a descriptor").pass(&mut contenders, "lock");
        let mut contenders = contenders.spawn().expect("it starts");
        await_that(|| lock.descriptors() == 1);
        std::thread::sleep(Duration::from_micros(chance.below(20_000)));
        contenders.kill().expect("ours");
        contenders.wait().expect("a child");
    }
    let channel = grant.open().expect("a channel");
    await_that(|| channel.waiting() == 0);
    assert_eq!((lock.descriptors(), lock.deaths().0), (0, 0));
    let client = Client::new(channel);
    let new = client.lock_alloc().expect("a lock");
    assert_eq!(client.lock_take(new, 1), Ok(0));
}

#[test]
fn a_file_system_that_hangs_below_costs_its_clients_time_alone() {
    let mut system = System::new();
    let (journals, files) = both(&mut system, [&[], &[]]);
    let client = journal::Client::new(channel(&journals));
    let journal = client.journal_open(b"it").expect("a journal");
    assert_eq!(client.journal_append(journal, b"one"), Ok(0));
    let instance = alive(&files);
    kill(instance, libc::SIGSTOP);
    await_that(|| stopped(instance));
    assert_eq!(client.journal_append(journal, b"two"), Ok(1));
    assert!(files.deaths().1 >= 1);
    assert_eq!(all(&client, b"it"), [b"one", b"two"]);
}

#[test]
fn where_the_file_system_is_given_up_those_above_it_say_so_and_live() {
    let mut system = System::new();
    let (journals, files) = both(&mut system, [&[], &[]]);
    let client = journal::Client::new(channel(&journals));
    let journal = client.journal_open(b"it").expect("a journal");
    let mut last = 0;
    while !files.given_up() {
        let instance = files.instance();
        if instance != 0 && instance != last {
            kill(instance, libc::SIGKILL);
            last = instance;
        }
        std::thread::yield_now();
    }
    let refused = Err(CallError::Service(libc::EOWNERDEAD));
    assert_eq!(client.journal_append(journal, b"one"), refused);
    // An instance that is born then is none the worse.
    kill_instance(&journals);
    assert_eq!(client.journal_append(journal, b"one"), refused);
    assert!(!journals.given_up());
}

#[test]
fn a_component_whose_instances_cannot_begin_is_given_up() {
    let mut system = System::new();
    let spec = Spec { name: "journal".into(), program: SERVICE.into(), arguments: vec!["journal".into()] };
    // It was granted no channel to a file system.
    assert!(system.start(spec).is_err());
}

#[test]
fn a_fault_anywhere_in_a_component_or_in_the_one_below_is_as_if_there_were_none() {
    use outlast_glue_rt::{Component, Point};
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("fails");
    let seen = |faults: [&[String]; 2], killed: bool| {
        let mut system = System::new();
        let (journals, files) = both(&mut system, faults);
        let (here, there) = (journal::Client::new(channel(&journals)), journal::Client::new(channel(&journals)));
        let one = here.journal_open(b"it").expect("a journal");
        let same = there.journal_open(b"it").expect("a journal");
        let first = here.journal_append(one, b"first");
        if killed {
            // The fault strikes while this death is recovered from.
            std::fs::write(&file, "").expect("a file");
            kill_instance(&files);
            kill_instance(&journals);
        }
        let seen = format!(
            "{first:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            there.journal_append(same, b"the second"),
            here.journal_read(one, 1, 100),
            there.journal_read(same, 0, 100),
            here.journal_close(one),
            there.journal_append(same, b"third"),
            there.journal_read(same, 2, 100),
        );
        await_that(|| journals.instance() != 0 && files.instance() != 0);
        (seen, journals.deaths().0 + files.deaths().0)
    };
    let (expected, deaths) = seen([&[], &[]], false);
    assert_eq!(deaths, 0);
    let journals = journal::Server(outlast_services::journal::Journals::default()).operations();
    let files = fs::Server(outlast_services::fs::Files::default()).operations();
    let used =
        files.iter().filter(|operation| ["fs_split", "fs_seek", "fs_write", "fs_read"].contains(&operation.name));
    let places = journals.iter().map(|operation| (0, operation)).chain(used.map(|operation| (1, operation)));
    for (which, operation) in places {
        for point in Point::ALL {
            let fault = [operation.name.to_string(), format!("{point:?}"), file.to_string_lossy().into_owned()];
            let mut faults: [&[String]; 2] = [&[], &[]];
            faults[which] = &fault;
            for killed in [false, true] {
                if !killed {
                    std::fs::write(&file, "").expect("a file");
                }
                let (seen, deaths) = seen(faults, killed);
                assert_eq!(seen, expected, "{} {point:?} {killed}", operation.name);
                assert!(!file.exists(), "{} {point:?} {killed} was never reached", operation.name);
                assert!(deaths >= 1, "{} {point:?} {killed}", operation.name);
            }
        }
    }
}
