//! Threads of components through micro-reboots: blocked, woken, timed out, and one at a time on the processor.

mod support;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Mutex;

use outlast_glue_rt::{CallError, Handle, System};
use outlast_services::stubs::scheduler::Client;
use outlast_services::timer::now;
use support::{await_that, kill_instance, start, while_killed, Chance};

fn client(handle: &Handle) -> Client {
    Client::new(handle.grant().expect("a channel").open().expect("a channel"))
}

#[test]
fn every_wake_up_of_one_client_wakes_a_thread_of_another_once_while_the_scheduler_is_killed() {
    const LAST: u32 = u32::MAX;
    let mut system = System::new();
    let handle = start(&mut system, "scheduler");
    let (here, there) = (client(&handle), client(&handle));
    let (ping, pong) = (here.sched_create(1).expect("a thread"), there.sched_create(1).expect("a thread"));
    let sent = AtomicU32::new(0);
    let mut chance = Chance::new();
    let (rounds, kills) = while_killed(&handle, &mut chance, || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1.. {
                    assert_eq!(here.sched_block(ping, 0), Ok(0));
                    match sent.load(Ordering::SeqCst) {
                        LAST => break,
                        sent => assert_eq!(sent, round, "woken by nobody"),
                    }
                    here.sched_wakeup(pong).expect("the other client's thread");
                }
            });
            let mut round = 0;
            while round < 300 || handle.deaths().0 < 12 {
                round += 1;
                sent.store(round, Ordering::SeqCst);
                there.sched_wakeup(ping).expect("the other client's thread");
                assert_eq!(there.sched_block(pong, 0), Ok(0));
            }
            sent.store(LAST, Ordering::SeqCst);
            there.sched_wakeup(ping).expect("the other client's thread");
            round
        })
    });
    println!("{kills} kills, {rounds} rounds");
}

#[test]
fn a_thread_that_nobody_wakes_blocks_until_its_time_has_come_and_not_less_while_the_scheduler_is_killed() {
    let mut system = System::new();
    let handle = start(&mut system, "scheduler");
    let client = client(&handle);
    let thread = client.sched_create(1).expect("a thread");
    let mut chance = Chance::new();
    let mut moments = Chance::new();
    let (rounds, kills) = while_killed(&handle, &mut chance, || {
        let mut rounds = 0;
        while rounds < 30 || handle.deaths().0 < 10 {
            let until = now() + moments.below(5_000_000);
            assert_eq!(client.sched_block(thread, until), Ok(1));
            assert!(now() >= until);
            client.sched_wakeup(thread).expect("ours");
            // Woken already.
            assert_eq!(client.sched_block(thread, until), Ok(0));
            rounds += 1;
        }
        rounds
    });
    println!("{kills} kills, {rounds} rounds");
}

#[test]
fn one_thread_at_a_time_has_the_processor_and_all_get_it_while_the_scheduler_is_killed() {
    const THREADS: u32 = 12;
    const TURNS: u32 = 80;
    let mut system = System::new();
    let handle = start(&mut system, "scheduler");
    let clients = [client(&handle), client(&handle), client(&handle)];
    let running = AtomicBool::new(false);
    let mut chance = Chance::new();
    let (turns, kills) = while_killed(&handle, &mut chance, || {
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..THREADS)
                .map(|number| {
                    let (client, running, handle) = (&clients[number as usize % 3], &running, &handle);
                    scope.spawn(move || {
                        let thread = client.sched_create(number).expect("a thread");
                        let mut turns = 0;
                        while turns < TURNS || handle.deaths().0 < 12 {
                            assert_eq!(client.sched_take(thread), Ok(0));
                            assert!(!running.swap(true, Ordering::SeqCst), "two have the processor");
                            std::thread::yield_now();
                            running.store(false, Ordering::SeqCst);
                            assert_eq!(client.sched_release(thread), Ok(0));
                            turns += 1;
                        }
                        client.sched_free(thread).expect("not running");
                        turns
                    })
                })
                .collect();
            all.into_iter().map(|thread| thread.join().expect("a thread")).sum::<u32>()
        })
    });
    println!("{kills} kills, {turns} turns");
    assert!(turns >= THREADS * TURNS);
}

#[test]
fn the_thread_with_the_highest_priority_gets_the_processor_next() {
    let mut system = System::new();
    let handle = start(&mut system, "scheduler");
    let client = client(&handle);
    let first = client.sched_create(0).expect("a thread");
    client.sched_take(first).expect("free");
    let order = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for priority in [3, 1, 4, 1, 5, 9, 2, 6] {
            let (client, order) = (&client, &order);
            let thread = client.sched_create(if priority == 9 { 0 } else { priority }).expect("a thread");
            if priority == 9 {
                client.sched_priority(thread, 9).expect("ours");
            }
            scope.spawn(move || {
                client.sched_take(thread).expect("sooner or later");
                order.lock().expect("unharmed").push(priority);
                client.sched_release(thread).expect("ours");
            });
            await_that(|| client.sched_waits(thread) == Ok(1));
        }
        // Those that waited when the scheduler died wait again before anything else is done.
        kill_instance(&handle);
        await_that(|| (first + 1..=first + 8).all(|thread| client.sched_waits(thread) == Ok(1)));
        assert_eq!(client.sched_take(first), Err(CallError::Service(libc::EDEADLK)), "still ours");
        assert_eq!(client.sched_free(first), Err(CallError::Service(libc::EBUSY)));
        client.sched_release(first).expect("ours");
    });
    assert_eq!(order.into_inner().expect("unharmed"), [9, 6, 5, 4, 3, 2, 1, 1]);
}

#[test]
fn without_g1_a_wake_up_is_lost() {
    for (service, expected) in [("scheduler", 0), ("scheduler-without-g1", 1)] {
        let mut system = System::new();
        let handle = start(&mut system, service);
        let (here, there) = (client(&handle), client(&handle));
        let thread = here.sched_create(1).expect("a thread");
        there.sched_wakeup(thread).expect("the other client's thread");
        kill_instance(&handle);
        assert_eq!(here.sched_block(thread, now() + 1), Ok(expected), "{service}");
    }
}
