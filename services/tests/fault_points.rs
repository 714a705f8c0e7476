//! A component that fails once, at every point of every operation in turn: its clients see what they see without.

#[path = "support/c.rs"]
mod c;
mod support;

use std::path::Path;

use outlast_glue_rt::{Component, Handle, Operation, Point, System};
use outlast_services::faulty::ERROR;
use outlast_services::fs::{APPEND, CREATE, EXCLUSIVE, FOLDER};
use outlast_services::timer::now;
use outlast_services::{event, fs, lock, memory, scheduler, stubs, timer};
use support::start_program;

/// What a client sees; numbers of descriptors and files left out, for these are nobody's business.
type Seen = Vec<String>;

const SERVICE: &str = env!("CARGO_BIN_EXE_outlast-service");

/// A component's program and its arguments.
type Program<'a> = (&'a Path, &'a [&'a str]);

macro_rules! see {
    ($($call:expr),* $(,)?) => {
        vec![$(format!("{:?}", $call)),*]
    };
}

fn channel(handle: &Handle) -> outlast_glue_rt::Channel {
    handle.grant().expect("a channel").open().expect("a channel")
}

fn check(service: &str, operations: &[Operation], seen: fn(&Handle) -> Seen) {
    check_program((SERVICE.as_ref(), &[service]), operations, seen);
}

/// `component`: its program, which fails as told by three arguments after those.
fn check_program(component: Program, operations: &[Operation], seen: fn(&Handle) -> Seen) {
    let run = |fault: &[String]| {
        let mut system = System::new();
        let fault: Vec<&str> = fault.iter().map(String::as_str).collect();
        let handle = start_program(&mut system, "component", component.0, &[component.1, &fault].concat());
        (seen(&handle), handle.deaths().0)
    };
    let (expected, deaths) = run(&[]);
    assert_eq!(deaths, 0);
    let folder = tempfile::tempdir().expect("a folder");
    // The services in C can die, too, but say nothing that is wrong.
    let error = (component.0 == Path::new(SERVICE)).then(|| ERROR.to_string());
    let failures: Vec<String> = Point::ALL.iter().map(|point| format!("{point:?}")).chain(error).collect();
    for (operation, failure) in operations.iter().flat_map(|operation| failures.iter().map(move |one| (operation, one)))
    {
        let file = folder.path().join("fails");
        std::fs::write(&file, "").expect("a file");
        let fault = [operation.name.to_string(), failure.clone(), file.to_string_lossy().into_owned()];
        let (seen, deaths) = run(&fault);
        assert_eq!(seen, expected, "{} {failure}", operation.name);
        assert!(!file.exists(), "{} {failure} was never reached", operation.name);
        // The last call's reply may be there before the death is.
        assert!(deaths <= u32::from(failure != ERROR), "{} {failure}", operation.name);
    }
    println!("{component:?}: {} faults", operations.len() * failures.len());
}

#[test]
fn a_file_system_that_fails_anywhere_is_as_if_it_had_not() {
    check("fs", stubs::fs::Server(fs::Files::default()).operations(), |handle| {
        let (here, there) = (stubs::fs::Client::new(channel(handle)), stubs::fs::Client::new(channel(handle)));
        let folder = here.fs_split(0, b"folder", CREATE | EXCLUSIVE | FOLDER).expect("a folder").0;
        let file = here.fs_split(folder, b"file", CREATE | EXCLUSIVE | APPEND).expect("a file").0;
        let old = here.fs_split(folder, b"old", CREATE | EXCLUSIVE).expect("a file").0;
        let same = there.fs_split(0, b"folder/file", 0).expect("there").0;
        let (buffer, filled) = (here.channel().buffer().expect("one"), there.channel().buffer().expect("one"));
        see![
            here.fs_write(file, b"once "),
            here.fs_write(file, b"and again"),
            there.fs_read(same, 3),
            there.fs_read(same, 100),
            buffer.write(0, b"and more"),
            here.fs_put(file, &buffer, 8),
            there.fs_get(same, &filled, 100),
            filled.read(0, 8),
            there.fs_seek(same, 1, -8),
            here.fs_truncate(file, 7),
            here.fs_status(file),
            there.fs_seek(same, 1, -12),
            there.fs_seek(same, 0, 1),
            there.fs_read(same, 100),
            here.fs_rename(file, b"old"),
            here.fs_list(folder, 100, 0),
            here.fs_write(old, b"replaced"),
            here.fs_remove(file),
            here.fs_list(folder, 100, 0),
            here.fs_release(file),
            here.fs_release(old),
            here.fs_remove(folder),
            here.fs_release(folder),
            there.fs_read(same, 1),
            here.count(),
        ]
    });
}

#[test]
fn a_scheduler_that_fails_anywhere_is_as_if_it_had_not() {
    check("scheduler", stubs::scheduler::Server(scheduler::Threads::default()).operations(), |handle| {
        type Client = stubs::scheduler::Client;
        let (here, there) = (Client::new(channel(handle)), Client::new(channel(handle)));
        let (one, two) = (here.sched_create(1).expect("a thread"), there.sched_create(2).expect("a thread"));
        see![
            there.sched_wakeup(one),
            here.sched_block(one, 0),
            here.sched_block(one, now() + 1_000),
            here.sched_priority(one, 3),
            here.sched_take(one),
            here.sched_take(one),
            here.sched_waits(one),
            here.sched_free(one),
            here.sched_release(one),
            here.sched_release(one),
            there.sched_take(two),
            there.sched_release(two),
            here.sched_free(one),
            there.sched_free(two),
        ]
    });
}

#[test]
fn locks_that_fail_anywhere_are_as_if_they_had_not() {
    let component = c::component("lock", None);
    let both: [Program; 2] = [(SERVICE.as_ref(), &["lock"]), (&component.program, &[])];
    for component in both {
        check_program(component, stubs::lock::Server(lock::Locks::default()).operations(), locks);
    }
}

fn locks(handle: &Handle) -> Seen {
    let client = stubs::lock::Client::new(channel(handle));
    let lock = client.lock_alloc().expect("a lock");
    see![
        client.lock_pretake(lock, 1),
        client.lock_take(lock, 1),
        client.lock_pretake(lock, 2),
        client.lock_take(lock, 1),
        client.lock_release(lock, 2),
        client.lock_free(lock),
        client.lock_release(lock, 1),
        client.lock_free(lock),
        client.count(),
    ]
}

#[test]
fn events_that_fail_anywhere_are_as_if_they_had_not() {
    let component = c::component("event", None);
    let both: [Program; 2] = [(SERVICE.as_ref(), &["event"]), (&component.program, &[])];
    for component in both {
        check_program(component, stubs::event::Server(event::Events::default()).operations(), events);
    }
}

fn events(handle: &Handle) -> Seen {
    let (here, there) = (stubs::event::Client::new(channel(handle)), stubs::event::Client::new(channel(handle)));
    let group = here.event_split(0, 1).expect("an event");
    let event = there.event_split(group, 2).expect("an event");
    see![
        here.event_trigger(event),
        there.event_wait(event),
        there.event_trigger(event),
        here.event_wait(event),
        here.event_trigger(group),
        there.event_wait(group),
        there.event_free(event),
        here.event_trigger(event).is_err(),
        here.event_free(group),
    ]
}

#[test]
fn memory_that_fails_anywhere_is_as_if_it_had_not() {
    let component = c::component("memory", None);
    let both: [Program; 2] = [(SERVICE.as_ref(), &["memory"]), (&component.program, &[])];
    for component in both {
        check_program(component, stubs::memory::Server(memory::Pages::default()).operations(), pages);
    }
}

fn pages(handle: &Handle) -> Seen {
    use memory::{map, PAGE, READ, WRITE};
    type Client = stubs::memory::Client;
    let (here, there) = (Client::new(channel(handle)), Client::new(channel(handle)));
    let page = here.mem_get(3).expect("memory").0;
    let alias = here.mem_alias(page, there.mem_who().expect("a number"), READ | WRITE).expect("an alias");
    let back = there.mem_alias(alias, here.mem_who().expect("a number"), READ).expect("an alias of an alias");
    let [mine, theirs, again] = [(&here, page), (&there, alias), (&here, back)].map(|(client, page)| map(client, page));
    let [mine, theirs, again] = [mine, theirs, again].map(|mapped| mapped.expect("mapped"));
    let text = |mapped: &outlast_glue_rt::Mapped| {
        let mut bytes = [0; 4];
        mapped.read(3 * PAGE - 4, &mut bytes).map(|()| bytes)
    };
    see![
        theirs.write(3 * PAGE - 4, b"text"),
        [&mine, &theirs, &again].map(|mapped| text(mapped)),
        there.mem_revoke(alias),
        [&mine, &theirs, &again].map(|mapped| text(mapped)),
        map(&here, back).is_err(),
        here.mem_revoke(page),
        text(&mine),
        here.count(),
    ]
}

#[test]
fn timers_that_fail_anywhere_are_as_if_they_had_not() {
    check("timer", stubs::timer::Server(timer::Timers::default()).operations(), |handle| {
        let client = stubs::timer::Client::new(channel(handle));
        // Two periods have ended, and no other will soon. The clock tells how long the machine has run, which may be minutes.
        let period = now() / 3;
        let timer = client.timer_create(now() - period * 5 / 2, period).expect("a timer");
        see![client.timer_wait(timer), client.timer_remove(timer), client.count()]
    });
}
