//! Anchors that are replaced: a former one may live on for a while, a new one is a copy of the program as it is then.

mod support;

use outlast_image::control::{request, Control, MAGIC};
use outlast_image::layout::PAGE;
use rustix::mm::{mmap, MapFlags, ProtFlags};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::atomic::Ordering::SeqCst;
use support::{finish, kill, said, trace, traced, until, Home};

/// The signal by which the engine is asked to look at what is wanted of it.
const KNOCK: i32 = 64;

/// The control page of a program's session, to which whoever may trace the program can write.
fn control(home: &Home, name: &str) -> &'static Control {
    let path = home.state().join(name).join("session");
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: the page holds nothing but atomics, and stays mapped.
    let control: &Control =
        unsafe { &*mmap(std::ptr::null_mut(), PAGE as usize, access, shared, &file, 0).unwrap().cast() };
    assert_eq!(control.magic.load(SeqCst), MAGIC);
    control
}

/// A program that waits before a closed door, and its anchors: the first, stopped, and another one that has taken its place.
struct Two {
    home: Home,
    child: std::process::Child,
    pid: Value,
    former: Value,
    present: Value,
}

impl Two {
    fn new() -> Two {
        let home = Home::new();
        let script = format!("echo one; {}; echo two; exit 3", home.door().wait());
        let out = std::fs::File::create(home.file("out")).unwrap();
        let child = home.run_script("it", &script).stdout(out).stderr(Stdio::piped()).spawn().unwrap();
        let first = home.await_status("it", |status| status["protected"] == true && status["anchor"].is_i64());
        // As if its maker had died before anybody heard of it: the program is asked for another one.
        kill(&first["anchor"], libc::SIGSTOP);
        control(&home, "it").request.fetch_or(request::ANCHOR, SeqCst);
        kill(&first["pid"], KNOCK);
        let is_another = |status: &Value| status["anchor"].is_i64() && status["anchor"] != first["anchor"];
        let second = home.await_status("it", is_another);
        let (former, present) = (first["anchor"].clone(), second["anchor"].clone());
        Two { home, child, pid: second["pid"].clone(), former, present }
    }

    /// Kills the program while neither anchor does what it is asked for.
    fn kill_program(&self) {
        kill(&self.present, libc::SIGSTOP);
        kill(&self.pid, libc::SIGKILL);
        until("the request for a process", || control(&self.home, "it").anchor_command.load(SeqCst) != 0);
    }

    /// How the program went on, if it did as if nothing had been.
    fn end(self, event: &str) -> Home {
        self.home.await_event("it", event, 1);
        self.home.door().open();
        let output = finish(self.child);
        let seen = std::fs::read_to_string(self.home.file("out")).unwrap();
        assert!(output.status.code() == Some(3) && seen == "one\ntwo\n", "{seen} {}", said(&output));
        self.home
    }
}

#[test]
fn a_former_anchor_is_not_taken_for_the_program_when_the_present_one_dies() {
    let two = Two::new();
    two.kill_program();
    kill(&two.present, libc::SIGKILL);
    two.end("resumed");
}

#[test]
fn a_change_of_anchors_that_was_committed_is_finished_after_a_death_in_its_middle() {
    let two = Two::new();
    let (former, present) = (two.former.as_i64().unwrap() as i32, two.present.as_i64().unwrap() as i32);
    let page = control(&two.home, "it");
    // As the program has it between the commit of a change of limits or rights, and the end of the former anchor.
    page.next_anchor.store(present, SeqCst);
    page.next_anchor_seq.store(1, SeqCst);
    page.anchor_pid.store(former, SeqCst);
    two.kill_program();
    // The one that serves has the other one end, and takes its time to make the process.
    kill(&two.former, libc::SIGKILL);
    until("the end of the former anchor", || !std::path::Path::new(&format!("/proc/{former}/fd/0")).exists());
    std::thread::sleep(std::time::Duration::from_millis(50));
    kill(&two.present, libc::SIGCONT);
    let home = two.end("recovered");
    assert!(!home.events("it").contains(&"resumed".into()), "{:?}", home.log("it"));
}

/// A program with an input, whose anchor stops between making a process and saying so.
struct Latched {
    home: Home,
    child: std::process::Child,
    output: BufReader<std::process::ChildStdout>,
    pid: Value,
    anchor: i32,
}

impl Latched {
    fn new(script: &str) -> Latched {
        let home = Home::new();
        let mut run = home.outlast(["run", "--name", "it", "--", "/usr/bin/python3", "-c", script]);
        let run = run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = run.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        assert_eq!(line(&mut output), "one\n");
        let status = home.await_status("it", |status| status["protected"] == true && status["anchor"].is_i64());
        let anchor = status["anchor"].as_i64().unwrap() as i32;
        trace(libc::PTRACE_SEIZE, anchor, libc::PTRACE_O_TRACECLONE as u64);
        Latched { home, child, output, pid: status["pid"].clone(), anchor }
    }

    /// Kills the program. The process that the anchor makes runs on.
    fn kill_program(&mut self) -> i32 {
        kill(&self.pid, libc::SIGKILL);
        assert_eq!(traced(self.anchor) >> 8, libc::SIGTRAP | libc::PTRACE_EVENT_CLONE << 8);
        let mut born: libc::c_ulong = 0;
        trace(libc::PTRACE_GETEVENTMSG, self.anchor, &raw mut born as u64);
        assert!(libc::WIFSTOPPED(traced(born as i32)));
        trace(libc::PTRACE_DETACH, born as i32, 0);
        born as i32
    }

    fn say(&mut self, what: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(what).unwrap();
    }

    /// It ends well. How often it was recovered.
    fn recoveries(self) -> usize {
        let output = finish(self.child);
        assert!(output.status.success(), "{}", said(&output));
        self.home.events("it").iter().filter(|event| *event == "recovered").count()
    }
}

fn line(output: &mut impl BufRead) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line
}

/// Changes its limits as soon as it may go on: that takes another anchor.
const CHANGES_LIMITS: &str = "import resource
print('one', flush=True)
input()
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
print('two', flush=True)
print(input(), flush=True)
";

#[test]
fn a_process_that_ends_the_anchor_which_made_it_is_known_at_once() {
    let mut it = Latched::new(CHANGES_LIMITS);
    let born = it.kill_program();
    it.say(b"go on\n");
    // First: whoever traces it keeps its death from the supervisor, which may wait for that.
    assert_eq!(libc::WTERMSIG(traced(it.anchor)), libc::SIGKILL);
    assert_eq!(line(&mut it.output), "two\n");
    // Whoever does not know of the process does not learn of its death either.
    kill(&Value::from(born), libc::SIGKILL);
    it.say(b"three\n");
    assert_eq!(line(&mut it.output), "three\n");
    assert_eq!(it.recoveries(), 2);
}

/// Has a process that is stopped go on to the entry of its next system call. The call's number.
fn to_next_call(pid: i32) -> u64 {
    const ENTRY: u8 = 1;
    loop {
        trace(libc::PTRACE_SYSCALL, pid, 0);
        assert!(libc::WIFSTOPPED(traced(pid)));
        // SAFETY: plain data.
        let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
        let (address, len) = (&raw mut info, size_of_val(&info));
        // SAFETY: writes to `info`.
        assert!(unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, len, address) } > 0);
        if info.op == ENTRY {
            // SAFETY: that is what is there at an entry.
            return unsafe { info.u.entry.nr };
        }
    }
}

/// Becomes another program as soon as it may go on.
const BECOMES_ANOTHER: &str = "import os
print('one', flush=True)
input()
os.execv('/bin/echo', ['echo', 'two'])
";

#[test]
fn nobody_knocks_at_a_restored_program_that_becomes_another_one() {
    let mut it = Latched::new(BECOMES_ANOTHER);
    let born = it.kill_program();
    let supervisor = it.child.id() as i32;
    trace(libc::PTRACE_SEIZE, supervisor, libc::PTRACE_O_TRACESYSGOOD as u64);
    trace(libc::PTRACE_INTERRUPT, supervisor, 0);
    assert!(libc::WIFSTOPPED(traced(supervisor)));
    trace(libc::PTRACE_DETACH, it.anchor, 0);
    it.say(b"go on\n");
    let control = control(&it.home, "it");
    until("its execve", || control.exec_request.load(SeqCst) != 0);
    // The supervisor hears at once that it was restored, that it wants to become another, and that a commit is wanted.
    control.request.fetch_or(request::COMMIT, SeqCst);
    loop {
        match to_next_call(supervisor) as i64 {
            libc::SYS_rt_sigqueueinfo => until("the end of its execve", || state(born) == 't'),
            libc::SYS_ppoll | libc::SYS_poll => break,
            _ => (),
        }
    }
    trace(libc::PTRACE_DETACH, supervisor, 0);
    assert_eq!(line(&mut it.output), "two\n");
    assert_eq!(it.recoveries(), 1);
}

/// What the kernel says that a process does.
fn state(pid: i32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
}

/// Starts a thread, and shows nothing of that for a while.
const STARTS_A_THREAD: &str = "import os, sys, threading
def wait(door):
    while not os.path.exists(door): pass
print('one', flush=True)
wait(sys.argv[1])
thread = threading.Thread(target=wait, args=(sys.argv[2],))
thread.start()
thread.join()
print('two', flush=True)
";

#[test]
fn a_program_that_goes_back_to_when_it_had_one_thread_starts_others_again() {
    let home = Home::new();
    let doors = [home.file("first"), home.file("second")];
    let mut run =
        home.outlast(["run", "--name", "it", "--commit", "manual", "--", "/usr/bin/python3", "-c", STARTS_A_THREAD]);
    let child = run.args(&doors).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let first = home.await_status("it", |status| status["protected"] == true);
    std::fs::write(&doors[0], "").unwrap();
    let threads = format!("/proc/{}/task", first["pid"]);
    until("another thread", || std::fs::read_dir(&threads).is_ok_and(|threads| threads.count() > 1));
    // The next anchor is a copy of the program as it is now, and the commit is from before.
    let before = home.await_protected("it");
    kill(&before["anchor"], libc::SIGKILL);
    home.await_status("it", |status| status["anchor"].is_i64() && status["anchor"] != before["anchor"]);
    kill(&before["pid"], libc::SIGKILL);
    home.await_event("it", "recovered", 1);
    std::fs::write(&doors[1], "").unwrap();
    let output = finish(child);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one\ntwo\n", "{}", said(&output));
    assert!(!home.events("it").contains(&"degradation".into()), "{:#?}", home.log("it"));
}
