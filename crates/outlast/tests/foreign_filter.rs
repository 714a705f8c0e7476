//! Filters of system calls (seccomp) that were there before outlast, as a service manager installs them: a program that lives under
//! them lives under outlast, too, with protection where that can be had.

mod support;

use outlast_filter::needs::{wish, Need, ENTRY, NEEDS, OUTSIDE, OUTSIDE_OR_OLDER, UNFILTERED};
use outlast_filter::Question;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use support::{counter, finish, kill, kill_everything, said, Home};

const KILL: u32 = 0x8000_0000;
const TRAP: u32 = 0x0003_0000;
const ALLOW: u32 = 0x7fff_0000;
const EPERM: u32 = 0x0005_0001;
const ENOSYS: u32 = 0x0005_0026;

/// `struct sock_filter`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

/// The answer for these calls, and the one for all others.
fn filter(calls: &[Question], answer: u32, otherwise: u32) -> Vec<Instruction> {
    const LOAD: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ARGUMENTS: u32 = 16;
    let instruction = |code, jf, k| Instruction { code, jt: 0, jf, k };
    let mut filter = Vec::new();
    for call in calls {
        let argument = call.args.iter().position(Option::is_some);
        filter
            .extend([instruction(LOAD, 0, 0), instruction(IF_EQUAL, if argument.is_some() { 3 } else { 1 }, call.nr)]);
        if let Some((n, value)) = argument.and_then(|n| Some((n, call.args[n]?))) {
            filter.extend([instruction(LOAD, 0, ARGUMENTS + 8 * n as u32), instruction(IF_EQUAL, 1, value as u32)]);
        }
        filter.push(instruction(RETURN, 0, answer));
    }
    filter.push(instruction(RETURN, 0, otherwise));
    filter
}

/// Has a command begin under a filter.
fn under(command: &mut Command, filter: &[Instruction]) {
    #[repr(C)]
    struct Program(u16, *const Instruction);
    let filter = filter.to_vec();
    let install = move || {
        let program = Program(filter.len() as u16, filter.as_ptr());
        // SAFETY: the kernel reads the program, which is whole.
        let installed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
        };
        if installed {
            Ok(())
        } else {
            Err(std::io::Error::last_os_error())
        }
    };
    // SAFETY: makes system calls only, on memory that was prepared before.
    unsafe { command.pre_exec(install) };
}

fn refusing(nr: i64, answer: u32) -> Vec<Instruction> {
    filter(&[Question::any(nr as u32)], answer, ALLOW)
}

const SCRIPT: &str = "echo one; ls -d /; echo two; exit 6";

/// What a script comes to under a filter by itself, and under outlast.
fn both(home: &Home, filter: &[Instruction]) -> (Output, Output) {
    let mut native = Command::new("sh");
    native.args(["-c", SCRIPT]).stdin(Stdio::null());
    let mut protected = home.run_script("bare", SCRIPT);
    let [native, protected] = [&mut native, &mut protected].map(|command| {
        under(command, filter);
        finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    });
    assert_eq!(native.status.code(), Some(6), "{}", said(&native));
    assert_eq!(native.status.code(), protected.status.code(), "{}", said(&protected));
    assert_eq!(native.stdout, protected.stdout, "{}", said(&protected));
    (native, protected)
}

/// With whatever answer, the program runs as it would by itself, and the call is named.
fn is_left_alone_without(name: &str, nr: i64) {
    for answer in [KILL, TRAP, EPERM] {
        let home = Home::new();
        let (_, protected) = both(&home, &refusing(nr, answer));
        let complaint = String::from_utf8_lossy(&protected.stderr);
        assert_eq!(complaint.lines().count(), 1, "{name} {answer:x}: {complaint}");
        assert!(complaint.contains("runs unprotected") && complaint.contains(name), "{name} {answer:x}: {complaint}");
    }
}

/// With whatever answer, the program is protected and outlasts its death, that of its anchor, and that of its supervisor.
fn is_done_without(name: &str, nr: i64) {
    for answer in [KILL, TRAP, EPERM] {
        let home = Home::new();
        outlasts_all(&home, &refusing(nr, answer), &format!("{name} {answer:x}"));
    }
}

fn outlasts_all(home: &Home, filter: &[Instruction], what: &str) {
    let (script, mut expected) = counter(20);
    let script = format!("echo ready; read x; {}; read x; {script}", counter(3).0.replace("exit 3", ":"));
    expected = format!("ready\n{}{expected}", counter(3).1);
    let mut command = home.run_script("kept", &script);
    under(&mut command, filter);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let finishing = std::thread::spawn(move || finish(child));
    let mut tell = || std::io::Write::write_all(&mut input, b"on\n").unwrap();
    let status = home.await_status("kept", |status| status["protected"] == true || status["state"] == "suspended");
    assert_eq!(status["protected"], true, "{what}: {:#?}", home.log("kept"));
    kill(&status["pid"], libc::SIGKILL);
    home.await_event("kept", "recovered", 1);
    tell();
    let status = home.await_protected("kept");
    kill(&status["anchor"], libc::SIGKILL);
    kill(&status["pid"], libc::SIGKILL);
    // From an anchor that was made meanwhile, or from the store.
    home.await_status("kept", |status| status["protected"] == true && status["recoveries"].as_u64() >= Some(2));
    tell();
    let output = finishing.join().unwrap();
    assert_eq!(output.status.code(), Some(3), "{what}: {} {:#?}", said(&output), home.log("kept"));
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{what}: {}", said(&output));
}

#[test]
fn io_uring_is_done_without() {
    is_done_without("io_uring_setup", libc::SYS_io_uring_setup);
}

#[test]
fn userfaultfd_is_done_without() {
    is_done_without("userfaultfd", libc::SYS_userfaultfd);
}

#[test]
fn bpf_is_done_without() {
    is_done_without("bpf", libc::SYS_bpf);
}

/// Whoever may use BPF needs no samples.
#[test]
fn perf_events_are_done_without() {
    for answer in [KILL, TRAP, EPERM] {
        let mut both = refusing(libc::SYS_bpf, EPERM);
        // What neither is about the second one allows.
        both.pop();
        both.extend(refusing(libc::SYS_perf_event_open, answer));
        outlasts_all(&Home::new(), &both, &format!("perf_event_open {answer:x}"));
    }
}

#[test]
fn waits_for_several_words_are_done_without() {
    is_done_without("futex_waitv", libc::SYS_futex_waitv);
}

#[test]
fn nothing_is_protected_without_tracing() {
    is_left_alone_without("ptrace", libc::SYS_ptrace);
}

#[test]
fn nothing_is_protected_without_the_memory_of_others() {
    is_left_alone_without("process_vm_writev", libc::SYS_process_vm_writev);
}

#[test]
fn nothing_is_protected_without_files_in_memory() {
    is_left_alone_without("memfd_create", libc::SYS_memfd_create);
}

#[test]
fn nothing_is_protected_without_what_only_a_recovery_takes() {
    is_left_alone_without("pidfd_open", libc::SYS_pidfd_open);
    is_left_alone_without("mremap", libc::SYS_mremap);
}

#[test]
fn nothing_is_protected_without_threads_of_the_supervisor() {
    is_left_alone_without("clone3", libc::SYS_clone3);
    // As of an old kernel, and in containers: then there is another way.
    outlasts_all(&Home::new(), &refusing(libc::SYS_clone3, ENOSYS), "clone3");
}

/// What Linux gives services: memory that is executable is never made from what was writable.
#[test]
fn arguments_are_looked_at() {
    const PROT_EXEC: u64 = 5;
    let home = Home::new();
    let filter = filter(&[Question::with(libc::SYS_mprotect as u32, 2, PROT_EXEC)], EPERM, ALLOW);
    let (_, protected) = both(&home, &filter);
    let complaint = String::from_utf8_lossy(&protected.stderr);
    assert!(complaint.contains("runs unprotected") && complaint.contains("mprotect"), "{complaint}");
}

/// Whatever neither outlast nor what any program begins with takes ends the process: the lists are whole.
#[test]
fn nothing_is_made_that_was_not_tried() {
    /// Of the C library's beginning: access, arch_prctl; the shell's: getegid, getgid.
    const BEGINNING: &[i64] = &[libc::SYS_access, libc::SYS_arch_prctl, libc::SYS_getegid, libc::SYS_getgid];
    /// To install a filter, as the trial does.
    const TRIAL: &[i64] = &[libc::SYS_seccomp];
    /// fork of the C library, and what this trial's processes are made by.
    const FORKS: [u64; 3] = [0x120_0011, 0x11, 0x4011];
    let needs = [NEEDS, UNFILTERED, ENTRY, OUTSIDE, OUTSIDE_OR_OLDER].concat();
    let mut allowed: Vec<Question> = needs.iter().flat_map(Need::questions).collect();
    allowed.extend([BEGINNING, TRIAL].concat().into_iter().map(|nr| Question::any(nr as u32)));
    allowed.extend(FORKS.map(|flags| Question::with(libc::SYS_clone as u32, 0, flags)));
    // PR_SET_NO_NEW_PRIVS
    allowed.push(Question::with(libc::SYS_prctl as u32, 0, 38));
    let home = Home::new();
    outlasts_all(&home, &filter(&allowed, ALLOW, KILL), "nothing else");
    let wishes: Vec<Question> = wish::ALL.iter().map(|nr| Question::any(*nr)).collect();
    allowed.extend(wishes);
    let home = Home::new();
    outlasts_all(&home, &filter(&allowed, ALLOW, KILL), "nothing else, but what is done better with");
}

#[test]
fn a_resume_is_refused_in_words() {
    let home = Home::new();
    let door = home.door();
    let child = home.start_script("left", &door.wait());
    kill_everything(&home.await_protected("left"));
    let mut resume = home.outlast(["resume", "left"]);
    under(&mut resume, &refusing(libc::SYS_process_vm_writev, KILL));
    let refused = finish(resume.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("process_vm_writev"), "{}", said(&refused));
    finish(child);
}

#[test]
fn a_program_that_is_not_there_is_not_found() {
    let home = Home::new();
    let mut command = home.outlast(["run", "--", "no-such-program-here"]);
    under(&mut command, &refusing(libc::SYS_ptrace, KILL));
    let output = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(output.status.code(), Some(127), "{}", said(&output));
}

/// What `check` says of filters, and its exit status.
fn checked(filter: &[Instruction]) -> (serde_json::Value, Option<i32>) {
    let home = Home::new();
    let mut check = home.outlast(["check", "--json"]);
    under(&mut check, filter);
    let output = finish(check.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&output)));
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["what"] == "foreign-filter");
    (found.cloned().unwrap_or_default(), output.status.code())
}

#[test]
fn check_says_beforehand_what_filters_leave() {
    let (lost, status) = checked(&refusing(libc::SYS_ptrace, KILL));
    assert_eq!((&lost["bearing"], status), (&"lost".into(), Some(1)), "{lost}");
    assert!(lost["text"].as_str().unwrap().contains("ptrace"), "{lost}");
    let (noted, _) = checked(&refusing(libc::SYS_userfaultfd, KILL));
    assert_eq!(noted["bearing"], "note", "{noted}");
    assert!(noted["text"].as_str().unwrap().contains("userfaultfd"), "{noted}");
    let (kept, _) = checked(&refusing(libc::SYS_reboot, KILL));
    assert_eq!(kept["bearing"], "kept", "{kept}");
}

/// Its filters are taken for ours where they look the same, and then what is tried is said of both.
#[test]
fn attaching_is_refused_in_words() {
    let home = Home::new();
    let filter = refusing(libc::SYS_process_vm_writev, KILL);
    let mut program = Command::new("sleep");
    under(program.arg("1000"), &filter);
    let mut program = program.spawn().unwrap();
    let mut attach = home.outlast(["attach", &program.id().to_string(), "--name", "it"]);
    under(&mut attach, &filter);
    let refused = finish(attach.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let lives = program.try_wait().unwrap().is_none();
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(lives, "{}", said(&refused));
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("process_vm_writev"), "{}", said(&refused));
}
