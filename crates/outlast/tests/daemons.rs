//! Daemons: programs whose first process ends and leaves others behind, which stay protected under the program's name.

mod support;

use std::process::{Command, Stdio};
use std::time::Duration;
use support::tree::{kill, programs};
use support::{said, until, Home};

/// Writes one number after the other to a file, in so many processes that its first one leaves behind, each until a door of its own is open.
const DAEMONS: &str = "import os, sys, time
folder, count = sys.argv[1], int(sys.argv[2])
for which in range(count):
    if os.fork() == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        [os.dup2(null, stream) for stream in range(3)]
        n = 0
        with open(f'{folder}/out.{which}', 'w') as out:
            while not os.path.exists(f'{folder}/door.{which}'):
                print(n, file=out, flush=True)
                n += 1
                time.sleep(0.002)
            print('end', file=out)
        os._exit(0)
print('begun', flush=True)
while len(sys.argv) > 3 and not os.path.exists(f'{folder}/{sys.argv[3]}'):
    time.sleep(0.002)
os._exit(7)";

fn daemons(home: &Home, count: usize) -> Command {
    let folder = home.path().to_str().unwrap();
    home.outlast(["run", "--tree", "--name", "it", "--", "python3", "-c", DAEMONS, folder, &count.to_string()])
}

/// Starts a program whose first process ends at once, as a shell sees it.
fn leave_behind(home: &Home, count: usize) {
    // Waits for the end of its output as well.
    let output = daemons(home, count).output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(7), &b"begun\n"[..]), "{}", said(&output));
}

/// What a daemon has written: all of it, once.
fn assert_whole(home: &Home, which: usize) {
    std::fs::write(home.file(&format!("door.{which}")), "").unwrap();
    let read = || std::fs::read_to_string(home.file(&format!("out.{which}"))).unwrap_or_default();
    until("the daemon's end", || read().ends_with("end\n"));
    let text = read();
    let lines: Vec<&str> = text.lines().collect();
    for (n, line) in lines[..lines.len() - 1].iter().enumerate() {
        assert_eq!(*line, n.to_string(), "{lines:?}");
    }
}

#[test]
fn what_a_first_process_leaves_behind_stays_protected_under_its_name() {
    let home = Home::new();
    leave_behind(&home, 1);
    home.await_event("it", "passed-on", 1);
    for n in 1..4 {
        kill_it(&home);
        home.await_event("it", "recovered", n);
    }
    // Whoever watches it by now can be killed like any other.
    let watched = home.await_protected("it");
    support::kill(&watched["supervisor"], libc::SIGKILL);
    home.await_status("it", |status| status["protected"] == true && status["supervisor"] != watched["supervisor"]);
    kill_it(&home);
    home.await_event("it", "recovered", 4);
    assert_whole(&home, 0);
    home.await_status("it", |status| status["state"] == "exited");
    assert!(home.outlast(["run", "--name", "it", "--", "true"]).output().unwrap().status.success(), "its name is free");
}

fn kill_it(home: &Home) {
    support::kill(&home.await_protected("it")["pid"], libc::SIGKILL);
}

#[test]
fn what_is_left_behind_while_nobody_watches_stays_protected_as_well() {
    let home = Home::new();
    let mut run = daemons(&home, 1).arg("last").stdout(Stdio::null()).spawn().unwrap();
    until("the daemon", || home.file("out.0").metadata().is_ok_and(|file| file.len() > 0));
    let first = home.await_protected("it");
    support::kill(&first["supervisor"], libc::SIGSTOP);
    std::fs::write(home.file("last"), "").unwrap();
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", first["pid"])).unwrap_or_default();
    until("the first one's end", || !stat().contains(") ") || stat().contains(") Z"));
    support::kill(&first["supervisor"], libc::SIGKILL);
    run.wait().unwrap();
    home.await_event("it", "passed-on", 1);
    home.await_protected("it");
    kill_it(&home);
    home.await_event("it", "recovered", 1);
    assert_whole(&home, 0);
    home.await_status("it", |status| status["state"] == "exited");
}

#[test]
fn one_after_the_other_takes_the_first_place() {
    let home = Home::new();
    leave_behind(&home, 3);
    let recovered = || home.events("it").iter().filter(|event| *event == "recovered").count();
    for which in 0..3 {
        home.await_event("it", "passed-on", which + 1);
        home.await_protected("it");
        // Those that are not in the first place are protected as well.
        for pid in programs(&home, "it") {
            let before = recovered();
            assert!(kill(pid));
            home.await_event("it", "recovered", before + 1);
        }
        assert_whole(&home, which);
    }
    home.await_status("it", |status| status["state"] == "exited");
}

#[test]
fn who_is_stopped_takes_all_it_has_left_behind_along() {
    let home = Home::new();
    leave_behind(&home, 2);
    home.await_event("it", "passed-on", 1);
    home.await_protected("it");
    assert!(home.outlast(["stop", "it"]).output().unwrap().status.success());
    assert_eq!(home.status("it")["state"], "exited");
    let sizes = || [0, 1].map(|which| std::fs::metadata(home.file(&format!("out.{which}"))).unwrap().len());
    until("nobody to write any more", || {
        let before = sizes();
        std::thread::sleep(Duration::from_millis(200));
        sizes() == before
    });
}
