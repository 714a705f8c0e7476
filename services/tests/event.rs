//! Global descriptors through micro-reboots: made by one client, used by another.

mod support;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use outlast_glue_rt::{CallError, Channel, Handle, System};
use outlast_services::by_hand;
use outlast_services::stubs::event::Client;
use support::{kill_instance, start, while_killed, Chance};

mod without_u0 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/event_without_u0.rs"));
}

mod without_r0 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/event_without_r0.rs"));
}

fn channel(handle: &Handle) -> Channel {
    handle.grant().expect("a channel").open().expect("a channel")
}

/// The service's calls, by whatever stubs.
trait Calls: Sync {
    fn event_split(&self, parent: u64, group: i32) -> Result<u64, CallError>;
    fn event_wait(&self, event: u64) -> Result<i32, CallError>;
    fn event_trigger(&self, event: u64) -> Result<i32, CallError>;
    fn event_free(&self, event: u64) -> Result<i32, CallError>;
}

macro_rules! calls {
    ($($client:ty),*) => {
        $(impl Calls for $client {
            fn event_split(&self, parent: u64, group: i32) -> Result<u64, CallError> {
                <$client>::event_split(self, parent, group)
            }

            fn event_wait(&self, event: u64) -> Result<i32, CallError> {
                <$client>::event_wait(self, event)
            }

            fn event_trigger(&self, event: u64) -> Result<i32, CallError> {
                <$client>::event_trigger(self, event)
            }

            fn event_free(&self, event: u64) -> Result<i32, CallError> {
                <$client>::event_free(self, event)
            }
        })*
    };
}

calls!(Client, by_hand::event::Client);

#[test]
fn every_trigger_of_one_client_is_waited_for_once_by_another_while_the_component_is_killed() {
    each_trigger_is_waited_for(Client::new, Client::new);
}

#[test]
fn recovery_that_is_written_by_hand_loses_no_trigger_either_also_beside_the_generated_one() {
    each_trigger_is_waited_for(by_hand::event::Client::new, by_hand::event::Client::new);
    each_trigger_is_waited_for(by_hand::event::Client::new, Client::new);
    each_trigger_is_waited_for(Client::new, by_hand::event::Client::new);
}

fn each_trigger_is_waited_for<A: Calls, B: Calls>(one: fn(Channel) -> A, other: fn(Channel) -> B) {
    let mut system = System::new();
    let handle = start(&mut system, "event");
    let (here, there) = (one(channel(&handle)), other(channel(&handle)));
    let group = here.event_split(0, 1).expect("an event");
    // Each client makes one, so that each needs the other to recover what it triggers.
    let ping = here.event_split(group, 1).expect("an event");
    let pong = there.event_split(group, 1).expect("an event in another client's group");
    const LAST: u32 = u32::MAX;
    let sent = AtomicU32::new(0);
    let mut chance = Chance::new();
    let (_, kills) = while_killed(&handle, &mut chance, || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1.. {
                    here.event_wait(ping).expect("a trigger");
                    match sent.load(Ordering::SeqCst) {
                        LAST => break,
                        sent => assert_eq!(sent, round, "woken by a trigger that nobody made"),
                    }
                    here.event_trigger(pong).expect("the other client's event");
                }
            });
            for round in 1.. {
                sent.store(round, Ordering::SeqCst);
                there.event_trigger(ping).expect("the other client's event");
                there.event_wait(pong).expect("a trigger");
                if round >= 300 && handle.deaths().0 >= 12 {
                    println!("{round} rounds");
                    break;
                }
            }
            sent.store(LAST, Ordering::SeqCst);
            there.event_trigger(ping).expect("the other client's event");
        });
    });
    println!("{kills} kills");
    here.event_free(ping).expect("free");
    assert_eq!(there.event_trigger(ping), Err(CallError::Refused(libc::EBADF)));
    kill_instance(&handle);
    assert_eq!(there.event_trigger(ping), Err(CallError::Refused(libc::EBADF)), "freed for good");
    there.event_trigger(pong).expect("still there");
}

#[test]
fn a_trigger_that_nobody_waited_for_yet_is_kept() {
    let mut system = System::new();
    let handle = start(&mut system, "event");
    let (here, there) = (Client::new(channel(&handle)), Client::new(channel(&handle)));
    let event = here.event_split(0, 0).expect("an event");
    there.event_trigger(event).expect("the other client's event");
    kill_instance(&handle);
    assert_eq!(here.event_wait(event), Ok(0));
    assert_eq!(here.count(), 1);
}

#[test]
fn without_r0_a_trigger_is_lost() {
    let mut system = System::new();
    let handle = start(&mut system, "event");
    let (here, there) = (without_r0::Client::new(channel(&handle)), Client::new(channel(&handle)));
    let event = here.event_split(0, 0).expect("an event");
    there.event_trigger(event).expect("the other client's event");
    kill_instance(&handle);
    let waiter = std::thread::spawn(move || here.event_wait(event));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!waiter.is_finished());
}

#[test]
fn without_u0_nobody_recovers_what_another_client_needs() {
    let mut system = System::new();
    let handle = start(&mut system, "event");
    let (here, there) = (without_u0::Client::new(channel(&handle)), Client::new(channel(&handle)));
    let event = here.event_split(0, 0).expect("an event");
    there.event_trigger(event).expect("the other client's event");
    kill_instance(&handle);
    assert_eq!(there.event_trigger(event), Err(CallError::Refused(libc::EOWNERDEAD)));
    assert_eq!(here.event_wait(event), Ok(0), "its creator still can");
}

#[test]
fn without_g0_the_component_does_not_know_what_another_client_needs() {
    let mut system = System::new();
    let handle = start(&mut system, "event-without-g0");
    let (here, there) = (Client::new(channel(&handle)), Client::new(channel(&handle)));
    let event = here.event_split(0, 0).expect("an event");
    there.event_trigger(event).expect("the other client's event");
    kill_instance(&handle);
    assert_eq!(there.event_trigger(event), Err(CallError::Refused(libc::EBADF)));
}

#[test]
fn a_trigger_ends_one_wait_of_many_threads_though_others_recover_the_event_for_them() {
    a_trigger_ends_one_wait(Client::new);
}

#[test]
fn recovery_that_is_written_by_hand_ends_one_wait_for_each_trigger_too() {
    a_trigger_ends_one_wait(by_hand::event::Client::new);
}

fn a_trigger_ends_one_wait<C: Calls>(client: fn(Channel) -> C) {
    let mut system = System::new();
    let handle = start(&mut system, "event");
    let (here, there) = (client(channel(&handle)), client(channel(&handle)));
    let event = here.event_split(0, 0).expect("an event");
    let (ended, over) = (AtomicU32::new(0), AtomicU32::new(0));
    let mut chance = Chance::new();
    let (rounds, kills) = while_killed(&handle, &mut chance, || {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while over.load(Ordering::SeqCst) == 0 {
                        here.event_wait(event).expect("a trigger");
                        ended.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            let mut rounds = 0;
            let mut stuck = false;
            while !stuck && (rounds < 3_000 || handle.deaths().0 < 60) {
                there.event_trigger(event).expect("the other client's event");
                rounds += 1;
                let begun = Instant::now();
                while ended.load(Ordering::SeqCst) != rounds && !stuck {
                    stuck = begun.elapsed() > Duration::from_secs(20);
                    std::thread::yield_now();
                }
            }
            over.store(1, Ordering::SeqCst);
            // Each thread ends with one more, whatever was lost.
            while ended.load(Ordering::SeqCst) < rounds - u32::from(stuck) + 8 {
                there.event_trigger(event).expect("the other client's event");
                std::thread::yield_now();
            }
            assert!(!stuck, "a trigger ended no wait, after {rounds} rounds");
            rounds
        })
    });
    println!("{kills} kills, {rounds} rounds");
}
