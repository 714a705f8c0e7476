//! Programs that hang go on from their last commit; programs that only take their time are left alone.

mod support;

use std::time::Duration;
use support::talk::{answers, Talk};
use support::{said, until, Home};

fn begin(options: &[&str]) -> Talk<Home> {
    let home = Home::new();
    let program = answers(&home);
    let mut command = home.outlast(["run", "--name", "it"]);
    command.args(options);
    Talk::begin(home, command, &program)
}

/// Asks for as long as it takes to know the program's usual sections.
fn train(talk: &mut Talk<Home>) {
    for _ in 0..80 {
        talk.ask("usual");
        std::thread::sleep(Duration::from_millis(260));
    }
}

#[test]
fn what_computes_beyond_the_limit_is_ended_and_goes_on_from_its_last_commit() {
    let mut talk = begin(&["--hang=300ms", "--retries", "1000"]);
    talk.ask("one");
    for line in ["hang", "thread"] {
        let hangs = talk.hangs();
        talk.say(line);
        if line == "thread" {
            talk.hear(line);
        }
        talk.home.await_event("it", "hung", hangs + 1);
        let log = talk.home.log("it");
        let stacks = log.iter().rfind(|e| e["event"] == "hung").unwrap()["stacks"].to_string();
        assert!(stacks.contains("hang+0x") || stacks.contains("main+0x"), "{stacks}");
        talk.may_hang(false);
        if line == "hang" {
            talk.hear(line);
        }
        talk.ask("more");
        talk.may_hang(true);
    }
    talk.may_hang(false);
    talk.ask("and more");
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn what_stays_in_a_section_that_was_always_short_is_found_without_a_limit() {
    let mut talk = begin(&["--hang", "--retries", "1000"]);
    train(&mut talk);
    talk.say("hang");
    talk.home.await_event("it", "hung", 1);
    talk.may_hang(false);
    talk.hear("hang");
    talk.ask("more");
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn nothing_is_concluded_of_what_is_not_known_and_what_waits_does_not_hang() {
    let mut talk = begin(&["--hang"]);
    for _ in 0..3 {
        talk.ask("compute 1500");
        std::thread::sleep(Duration::from_millis(1500));
    }
    assert_eq!(talk.hangs(), 0);
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn who_is_stopped_does_not_hang_however_long_and_goes_on() {
    let mut talk = begin(&["--hang=1s"]);
    talk.ask("one");
    for _ in 0..3 {
        // Between two calls: there the time-stamp would expire.
        talk.say("compute 700");
        std::thread::sleep(Duration::from_millis(200));
        let pid = talk.home.status("it")["pid"].clone();
        support::kill(&pid, libc::SIGSTOP);
        std::thread::sleep(Duration::from_millis(2500));
        support::kill(&pid, libc::SIGCONT);
        talk.hear("compute 700");
    }
    let events = talk.home.events("it");
    assert!(!events.iter().any(|event| ["hung", "starved", "recovered"].contains(&event.as_str())), "{events:?}");
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn threads_that_wait_for_each_other_are_found_told_of_and_go_on_from_their_last_commit() {
    let mut talk = begin(&["--hang", "--retries", "1000"]);
    talk.ask("one");
    for line in ["mutexes", "locks", "twice"] {
        // On a busy machine it hangs again before it learns that it need not any more.
        let hangs = talk.hangs();
        talk.say(line);
        talk.home.await_event("it", "hung", hangs + 1);
        talk.may_hang(false);
        talk.hear(line);
        talk.ask("more");
        let log = talk.home.log("it");
        let told: Vec<&str> = log.iter().filter(|e| e["event"] == "hung").filter_map(|e| e["cause"].as_str()).collect();
        let last = told.last().unwrap();
        let [what, threads] = if line == "locks" { ["read-write lock", "; "] } else { ["mutex", "thread "] };
        assert!(last.contains("deadlock") && last.contains(what) && last.contains(threads), "{told:?}");
        let stacks = log.iter().rfind(|e| e["event"] == "hung").unwrap()["stacks"].as_array().unwrap();
        let function = match line {
            "mutexes" => "take_mutexes+",
            "locks" => "take_locks+",
            _ => "main+",
        };
        assert!(stacks.iter().all(|stack| stack.as_str().unwrap().contains(function)), "{stacks:#?}");
        assert_eq!(last.matches("waits for").count(), if line == "twice" { 1 } else { 2 }, "{told:?}");
        talk.may_hang(true);
    }
    talk.may_hang(false);
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn a_hang_that_comes_again_is_tried_a_bounded_number_of_times_and_its_state_stays() {
    let mut talk = begin(&["--hang=200ms", "--retries", "2"]);
    talk.ask("one");
    talk.say("hang");
    let mut status = None;
    until("the end of what hangs again and again", || {
        status = talk.child.try_wait().unwrap();
        status.is_some()
    });
    // Two tries after the first hang.
    assert_eq!(talk.hangs(), 3);
    let log = talk.home.log("it");
    let gave_up = log.iter().find(|entry| entry["event"] == "gave-up").unwrap_or_else(|| panic!("{log:#?}"));
    assert!(gave_up["cause"].as_str().unwrap().contains("a hang"), "{gave_up}");
    talk.may_hang(false);
    let resumed = talk.home.outlast(["resume", "it"]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&resumed.stdout),
        "",
        "what it had read is gone with the pipe: {}",
        said(&resumed)
    );
    assert_eq!(resumed.status.code(), Some(3), "{}", said(&resumed));
}
