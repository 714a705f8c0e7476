//! Calls of locks in detail, each beside a pipe's round trip in the same round.

use outlast_glue_rt::{Channel, Interrupted, Request};
use outlast_services::by_hand;
use outlast_services::stubs::lock::{operation, Client};

use crate::clock::{beside, each, Table};
use crate::harm::kill;
use crate::pipe::Pipe;
use crate::services::component;

const CALLS: u32 = 2_000;
const DESCRIPTORS: u32 = 500;

pub fn measure(rounds: u32) -> String {
    let (_system, handle) = component("lock");
    let channel = handle.grant().expect("a channel").open().expect("a channel");
    channel.spin(0);
    let client = Client::new(channel.clone());
    let raw_lock = raw_lock(&channel);
    let lock = client.lock_alloc().expect("a lock");
    let mut pipe = Pipe::new();
    let by_hand = by_hand::lock::Client::new(channel.clone());
    let own = by_hand.lock_alloc().expect("a lock");
    let mut table = Table::new(&[
        "pipe round trip",
        "call",
        "tracking: of a call that changes nothing",
        "tracking: of one that takes or releases",
        "tracking: nothing (how exact this is)",
        "the same by hand: of a call that changes nothing",
        "the same by hand: of one that takes or releases",
        "micro-reboot, from the notice of the death",
        "kill until the first call is answered",
        "recovery of a descriptor, beyond the call",
        "the same by hand",
    ]);
    let mut raw_lock = raw_lock;
    for _ in 0..rounds {
        let mut note = |at: usize, micros: f64| table.note(at, micros);
        note(0, each(CALLS, || pipe.round_trip()));
        let words = [raw_lock, 1];
        let request =
            Request { operation: operation::LOCK_PRETAKE, epoch: channel.epoch(), words: &words, ..Request::default() };
        let call = |operation: u32, words: &[u64]| {
            let request = Request { operation, epoch: request.epoch, words, ..Request::default() };
            drop(channel.call(&request).expect("a reply"));
        };
        let pretake = || call(operation::LOCK_PRETAKE, &words);
        let turn = || {
            call(operation::LOCK_TAKE, &words);
            call(operation::LOCK_RELEASE, &words);
        };
        let (plain, beyond) = beside(CALLS, pretake, || assert!(client.lock_pretake(lock, 1).is_ok()));
        note(1, plain);
        note(2, beyond);
        let tracked_turn = || {
            client.lock_take(lock, 1).expect("free");
            client.lock_release(lock, 1).expect("ours");
        };
        note(3, beside(CALLS, turn, tracked_turn).1 / 2.0);
        note(4, beside(CALLS, pretake, pretake).1);
        note(5, beside(CALLS, pretake, || assert!(by_hand.lock_pretake(own, 1).is_ok())).1);
        let own_turn = || {
            by_hand.lock_take(own, 1).expect("free");
            by_hand.lock_release(own, 1).expect("ours");
        };
        note(6, beside(CALLS, turn, own_turn).1 / 2.0);
        let tracked = plain + beyond;
        let many: Vec<u64> = (0..DESCRIPTORS).map(|_| client.lock_alloc().expect("a lock")).collect();
        let own_many: Vec<u64> = (0..DESCRIPTORS).map(|_| by_hand.lock_alloc().expect("a lock")).collect();
        let killed = kill(&handle);
        client.lock_pretake(lock, 1).expect("a reply");
        note(8, killed.elapsed().as_secs_f64() * 1e6);
        note(7, handle.last_reboot().as_secs_f64() * 1e6);
        let mut each_one = many.iter();
        let all = each(DESCRIPTORS, || assert!(client.lock_pretake(*each_one.next().expect("one left"), 1).is_ok()));
        note(9, all - tracked);
        let mut each_one = own_many.iter();
        let all = each(DESCRIPTORS, || assert!(by_hand.lock_pretake(*each_one.next().expect("one left"), 1).is_ok()));
        note(10, all - tracked);
        for one in own_many {
            by_hand.lock_free(one).expect("free");
        }
        for one in many {
            client.lock_free(one).expect("free");
        }
        raw_lock = self::raw_lock(&channel);
    }
    table.text(rounds)
}

/// A lock as the component itself calls it.
pub fn raw_lock(channel: &Channel) -> u64 {
    loop {
        let request = Request { operation: operation::LOCK_ALLOC, epoch: channel.epoch(), ..Request::default() };
        match channel.call(&request) {
            Ok(reply) => return reply.words[0],
            Err(Interrupted::Fault { .. }) => {}
            Err(Interrupted::Failed(error)) => panic!("{error}"),
        }
    }
}
