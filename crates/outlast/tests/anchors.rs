//! Anchors that are replaced: a former one may live on for a while, a new one is a copy of the program as it is then.

mod support;

use outlast_image::control::{request, Control, MAGIC};
use outlast_image::layout::PAGE;
use rustix::mm::{mmap, MapFlags, ProtFlags};
use serde_json::Value;
use std::process::Stdio;
use std::sync::atomic::Ordering::SeqCst;
use support::{finish, kill, said, until, Home};

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
    let before = home.status("it");
    kill(&before["anchor"], libc::SIGKILL);
    home.await_status("it", |status| status["anchor"].is_i64() && status["anchor"] != before["anchor"]);
    kill(&before["pid"], libc::SIGKILL);
    home.await_event("it", "recovered", 1);
    std::fs::write(&doors[1], "").unwrap();
    let output = finish(child);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one\ntwo\n", "{}", said(&output));
    assert!(!home.events("it").contains(&"degradation".into()), "{:#?}", home.log("it"));
}
