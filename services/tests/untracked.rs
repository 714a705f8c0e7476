//! Stubs without tracking: they carry calls as the others do, and bring nothing back.

mod support;

use outlast_glue_rt::{CallError, Channel, Handle, System, Unusable};
use outlast_services::fs::CREATE;
use outlast_services::memory::{map_in, READ};
use outlast_services::stubs::{lock, untracked};
use outlast_services::timer::now;
use support::{kill_instance, start};

fn channel(handle: &Handle) -> Channel {
    handle.grant().expect("a channel").open().expect("a channel")
}

#[test]
fn what_was_open_is_gone_with_its_component_where_nothing_is_tracked() {
    let mut system = System::new();
    let handle = start(&mut system, "lock");
    let (bare, whole) = (untracked::lock::Client::new(channel(&handle)), lock::Client::new(channel(&handle)));
    let (lost, kept) = (bare.lock_alloc().expect("a lock"), whole.lock_alloc().expect("a lock"));
    assert_eq!(bare.lock_take(lost, 1), Ok(0));
    assert_eq!(whole.lock_take(kept, 1), Ok(0));
    kill_instance(&handle);
    assert_eq!(whole.lock_release(kept, 1), Ok(0));
    let said = bare.lock_release(lost, 1);
    // The number may be somebody else's by now.
    assert!(matches!(said, Err(CallError::Refused(_) | CallError::Died)), "{said:?}");
    let again = bare.lock_alloc().expect("a new one");
    assert_eq!(bare.lock_take(again, 1), Ok(0));
}

#[test]
fn a_thread_that_waits_is_told_of_the_death() {
    let mut system = System::new();
    let handle = start(&mut system, "event-untracked");
    let client = untracked::event::Client::new(channel(&handle));
    let event = client.event_split(0, 0).expect("an event");
    client.event_trigger(event).expect("ours");
    assert_eq!(client.event_wait(event), Ok(0));
    let waiter = std::thread::spawn({
        let client = client.clone();
        move || client.event_wait(event)
    });
    // Whenever it waits: from then on the first death is told to it.
    while !waiter.is_finished() {
        kill_instance(&handle);
    }
    let said = waiter.join().expect("the waiter");
    assert!(matches!(said, Err(CallError::Died | CallError::Refused(_))), "{said:?}");
}

#[test]
fn files_are_lost_with_the_component_and_all_services_work_without_tracking() {
    let mut system = System::new();
    let handle = start(&mut system, "fs-untracked");
    let files = untracked::fs::Client::new(channel(&handle));
    let (file, _) = files.fs_split(0, b"words", CREATE).expect("a file");
    assert_eq!(files.fs_write(file, b"once more").map(|(written, _)| written), Ok(9));
    files.fs_release(file).expect("ours");
    let (file, _) = files.fs_split(0, b"words", 0).expect("there");
    assert_eq!(files.fs_read(file, 100).map(|(_, data, _)| data), Ok(b"once more".to_vec()));
    kill_instance(&handle);
    assert_eq!(files.fs_split(0, b"words", 0), Err(CallError::Service(libc::ENOENT)));

    let handle = start(&mut system, "scheduler-untracked");
    let threads = untracked::scheduler::Client::new(channel(&handle));
    let thread = threads.sched_create(3).expect("a thread");
    threads.sched_wakeup(thread).expect("ours");
    assert_eq!(threads.sched_block(thread, 0), Ok(0));
    assert_eq!(threads.sched_block(thread, now() + 1000), Ok(1));

    let handle = start(&mut system, "timer-untracked");
    let timers = untracked::timer::Client::new(channel(&handle));
    let timer = timers.timer_create(now() - 10_500_000, 1_000_000).expect("a timer");
    assert!(timers.timer_wait(timer).expect("a period").1 >= 10);
}

#[test]
fn memory_is_shared_and_revoked_without_tracking() {
    let mut system = System::new();
    let handle = start(&mut system, "memory-untracked");
    let [here, there] = [(); 2].map(|()| untracked::memory::Client::new(channel(&handle)));
    let map = |client: &untracked::memory::Client, page| {
        let (_, count, rights, memory) = client.mem_map(page).expect("ours");
        map_in(client.channel(), page, count, rights, std::os::fd::AsFd::as_fd(&memory)).expect("mapped")
    };
    let (page, _) = here.mem_get(2).expect("memory");
    let alias = here.mem_alias(page, there.mem_who().expect("a number"), READ).expect("an alias");
    let (mine, theirs) = (map(&here, page), map(&there, alias));
    mine.write(5000, b"words").expect("there");
    let mut seen = [0; 5];
    assert_eq!((theirs.read(5000, &mut seen), &seen), (Ok(()), b"words"));
    here.mem_revoke(page).expect("ours");
    assert_eq!(theirs.read(5000, &mut seen), Err(Unusable::Revoked));
}
