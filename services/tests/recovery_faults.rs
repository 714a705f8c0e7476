//! A component that fails again while it is recovered from a failure, at every point of every call that recovery makes: its clients
//! see what they see without.

mod support;

use outlast_glue_rt::{Channel, Handle, Point, System};
use outlast_services::fs::{CREATE, FOLDER};
use outlast_services::memory::{READ, WRITE};
use outlast_services::stubs;
use outlast_services::timer::now;
use support::{kill_instance, start_program};

/// What a client sees.
type Seen = Vec<String>;
/// What clients have open, and what they do with that after the failure.
type Rest = Box<dyn FnOnce() -> Seen>;

macro_rules! see {
    ($($call:expr),* $(,)?) => {
        vec![$(format!("{:?}", $call)),*]
    };
}

fn channel(handle: &Handle) -> Channel {
    handle.grant().expect("a channel").open().expect("a channel")
}

/// `calls`: those that recovery makes.
fn check(service: &str, calls: &[&str], open: fn(&Handle) -> Rest) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("fails");
    let run = |fault: &[&str]| {
        let mut system = System::new();
        let program = env!("CARGO_BIN_EXE_outlast-service");
        let handle = start_program(&mut system, service, program.as_ref(), &[&[service], fault].concat());
        let rest = open(&handle);
        if !fault.is_empty() {
            std::fs::write(&file, "").expect("a file");
            kill_instance(&handle);
        }
        (rest(), handle.deaths().0)
    };
    let (expected, deaths) = run(&[]);
    assert_eq!(deaths, 0);
    for call in calls {
        for point in Point::ALL {
            let (point, path) = (format!("{point:?}"), file.to_string_lossy());
            let (seen, deaths) = run(&[call, &point, &path]);
            assert_eq!(seen, expected, "{call} {point}");
            assert!(!file.exists(), "{call} {point}: recovery does not make this call");
            assert!(deaths >= 2, "{call} {point}: {deaths}");
        }
    }
}

#[test]
fn locks_that_fail_while_they_are_recovered_are_as_if_they_had_not() {
    check("lock", &["lock_alloc", "lock_take"], |handle| {
        let client = stubs::lock::Client::new(channel(handle));
        let (held, free) = (client.lock_alloc().expect("a lock"), client.lock_alloc().expect("a lock"));
        client.lock_take(held, 1).expect("free");
        Box::new(move || {
            see![
                client.lock_pretake(held, 2),
                client.lock_release(held, 1),
                client.lock_take(free, 2),
                client.lock_release(free, 2),
                client.lock_free(held),
                client.lock_free(free),
            ]
        })
    });
}

#[test]
fn events_that_fail_while_another_client_recovers_them_are_as_if_they_had_not() {
    check("event", &["event_split", "event_trigger"], |handle| {
        let (here, there) = (stubs::event::Client::new(channel(handle)), stubs::event::Client::new(channel(handle)));
        let group = here.event_split(0, 1).expect("an event");
        let event = there.event_split(group, 2).expect("an event");
        here.event_trigger(event).expect("there");
        // Its maker is asked for it, and for that another one for the group.
        Box::new(move || {
            see![here.event_wait(event), here.event_trigger(event), there.event_wait(event), there.event_free(event)]
        })
    });
}

#[test]
fn a_file_system_that_fails_while_it_is_recovered_is_as_if_it_had_not() {
    check("fs", &["fs_split"], |handle| {
        let client = stubs::fs::Client::new(channel(handle));
        let (folder, _) = client.fs_split(0, b"folder", CREATE | FOLDER).expect("a folder");
        let (file, _) = client.fs_split(folder, b"file", CREATE).expect("a file");
        client.fs_write(file, b"some words").expect("room");
        client.fs_seek(file, 0, 5).expect("there");
        Box::new(move || {
            see![
                client.fs_read(file, 100),
                client.fs_write(file, b" more"),
                client.fs_status(file),
                client.fs_release(folder),
                client.fs_rename(file, b"name"),
                client.fs_release(file),
            ]
        })
    });
}

#[test]
fn memory_that_fails_while_it_is_recovered_is_as_if_it_had_not() {
    check("memory", &["mem_get", "mem_alias"], |handle| {
        type Client = stubs::memory::Client;
        let (here, there) = (Client::new(channel(handle)), Client::new(channel(handle)));
        let (page, _) = here.mem_get(1).expect("memory");
        let alias = here.mem_alias(page, there.mem_who().expect("a number"), READ | WRITE).expect("an alias");
        let mapped = outlast_services::memory::map(&there, alias).expect("mapped");
        mapped.write(0, b"text").expect("there");
        Box::new(move || {
            let again = outlast_services::memory::map(&there, alias).map(|mapped| {
                let mut bytes = [0; 4];
                mapped.read(0, &mut bytes).map(|()| bytes)
            });
            // Who revokes the page needs all aliases of it to be known.
            see![again, here.mem_revoke(page), mapped.write(0, b"more")]
        })
    });
}

#[test]
fn a_scheduler_that_fails_while_it_is_recovered_is_as_if_it_had_not() {
    check("scheduler", &["sched_create"], |handle| {
        type Client = stubs::scheduler::Client;
        let (here, there) = (Client::new(channel(handle)), Client::new(channel(handle)));
        let (one, two) = (here.sched_create(1).expect("a thread"), there.sched_create(2).expect("a thread"));
        there.sched_wakeup(one).expect("there");
        here.sched_take(one).expect("free");
        Box::new(move || {
            see![
                here.sched_block(one, 0),
                there.sched_wakeup(one),
                here.sched_release(one),
                there.sched_take(two),
                there.sched_release(two),
                here.sched_free(one),
                there.sched_free(two),
            ]
        })
    });
}

#[test]
fn timers_that_fail_while_they_are_recovered_are_as_if_they_had_not() {
    check("timer", &["timer_create"], |handle| {
        let client = stubs::timer::Client::new(channel(handle));
        // Two periods have ended, and no other will soon.
        let period = now() / 3;
        let timer = client.timer_create(now() - period * 5 / 2, period).expect("a timer");
        Box::new(move || see![client.timer_wait(timer), client.timer_remove(timer)])
    });
}
