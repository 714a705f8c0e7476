//! Locks through micro-reboots, watched from outside: the client's own output says who held the lock when.

#[path = "support/contend.rs"]
mod contend;
#[path = "support/held.rs"]
mod held;
mod support;
#[path = "support/watched.rs"]
mod watched;

use std::process::Command;
use std::time::Duration;

use contend::{Seen, THREADS};
use held::{outlives_templates, stays_held};
use outlast_glue_rt::{CallError, Channel, Interrupted, Request, System};
use outlast_services::stubs::lock::{operation, Client};
use support::{alive, await_that, kill, start, stopped};

fn contend(without: Option<&str>, rounds: u32, patience: Duration) -> (Seen, u32) {
    let mut system = System::new();
    let handle = start(&mut system, "lock");
    contend::contend(&handle, Command::new(env!("CARGO_BIN_EXE_lock-contenders")), rounds, without, patience)
}

#[test]
fn one_thread_at_a_time_holds_a_lock_whose_component_is_killed_again_and_again() {
    let rounds = 150;
    let mut all = 0;
    while all < 15 {
        let (seen, kills) = contend(None, rounds, Duration::from_secs(120));
        println!("{kills} kills");
        assert_eq!(seen, Seen::Right((THREADS * rounds) as usize));
        all += kills;
    }
}

#[test]
fn recovery_that_is_written_by_hand_keeps_what_the_generated_one_keeps() {
    let mut all = 0;
    while all < 15 {
        let (seen, kills) = contend(Some("by-hand"), 150, Duration::from_secs(120));
        println!("{kills} kills");
        assert_eq!(seen, Seen::Right((THREADS * 150) as usize));
        all += kills;
    }
}

#[test]
fn without_r0_a_lock_that_is_held_is_free_again() {
    let mut seen = (0..20).map(|_| contend(Some("r0"), 300, Duration::from_secs(20)).0);
    assert!(seen.any(|seen| seen != Seen::Right((THREADS * 300) as usize)));
}

#[test]
fn without_t0_threads_sleep_for_ever_in_a_dead_component() {
    assert_eq!(contend(Some("t0"), 5_000, Duration::from_secs(4)).0, Seen::Stuck);
}

#[test]
fn without_t1_a_descriptor_of_the_dead_is_used() {
    assert_eq!(contend(Some("t1"), 2_000, Duration::from_secs(60)).0, Seen::Failed);
}

fn client(system: &mut System) -> (outlast_glue_rt::Handle, Client, Channel) {
    let handle = start(system, "lock");
    let channel = handle.grant().expect("a channel").open().expect("a channel");
    (handle, Client::new(channel.clone()), channel)
}

#[test]
fn a_lock_stays_held_through_a_micro_reboot_and_its_waiter_waits_on() {
    let mut system = System::new();
    let (handle, client, _) = client(&mut system);
    stays_held(&handle, &client);
}

#[test]
fn a_template_that_dies_is_started_again_and_nobody_notices() {
    let mut system = System::new();
    let (handle, client, _) = client(&mut system);
    outlives_templates(&handle, &client);
}

#[test]
fn a_stopped_component_is_found_to_hang_and_is_replaced() {
    let mut system = System::new();
    let (handle, client, _) = client(&mut system);
    let lock = client.lock_alloc().expect("a lock");
    let instance = alive(&handle);
    kill(instance, libc::SIGSTOP);
    await_that(|| stopped(instance));
    assert_eq!(client.lock_pretake(lock, 1), Ok(1));
    // More than one on a machine that gives the next one no processor for as long as a hang is given.
    let (deaths, hangs) = handle.deaths();
    assert!(deaths >= 1 && deaths == hangs, "{deaths} deaths, {hangs} hangs");
}

#[test]
fn a_component_that_never_serves_is_given_up_and_its_clients_are_told() {
    let mut system = System::new();
    let (handle, client, _) = client(&mut system);
    let lock = client.lock_alloc().expect("a lock");
    let mut last = 0;
    while !handle.given_up() {
        let instance = handle.instance();
        if instance != 0 && instance != last {
            kill(instance, libc::SIGKILL);
            last = instance;
        }
        std::thread::yield_now();
    }
    assert_eq!(client.lock_take(lock, 1), Err(CallError::GivenUp));
}

#[test]
fn a_client_reaches_only_what_is_its_own() {
    let mut system = System::new();
    let (handle, client, channel) = client(&mut system);
    let other = handle.grant().expect("a channel").open().expect("a channel");
    client.lock_alloc().expect("a lock");
    // The component calls it 1; the other client guesses that.
    let take = |channel: &Channel, words: &[u64], operation: u32, bytes: &[u8]| {
        let request = Request { operation, epoch: channel.epoch(), words, bytes, ..Request::default() };
        match channel.call(&request) {
            Err(Interrupted::Failed(error)) => Err(error),
            Err(Interrupted::Fault { .. }) => panic!("nobody harms the component"),
            Ok(_) => Ok(()),
        }
    };
    assert_eq!(take(&other, &[1, 9], operation::LOCK_TAKE, &[]), Err(CallError::Refused(libc::EPERM)));
    assert_eq!(take(&other, &[2, 9], operation::LOCK_TAKE, &[]), Err(CallError::Refused(libc::EBADF)));
    let malformed: [(&[u64], u32, &[u8]); 6] = [
        (&[1], operation::LOCK_TAKE, &[]),
        (&[1, 2, 3], operation::LOCK_TAKE, &[]),
        (&[1, u64::MAX], operation::LOCK_TAKE, &[]),
        (&[1, 1 << 32], operation::LOCK_TAKE, &[]),
        (&[1, 2], 99, &[]),
        (&[1, 2], operation::LOCK_TAKE, b"bytes that nobody expects"),
    ];
    for (words, operation, bytes) in malformed {
        assert_eq!(take(&channel, words, operation, bytes), Err(CallError::Refused(libc::EINVAL)), "{words:?}");
    }
    assert_eq!(take(&channel, &[1, 9], operation::LOCK_TAKE, &[]), Ok(()));
    assert_eq!(handle.deaths(), (0, 0));
}
