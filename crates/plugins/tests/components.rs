//! Components on a core: what they are told, what they have done, and what becomes of those that fail.

mod support;

use outlast_core::confine::Overrun;
use outlast_core::{Failure, Microkernel, Notice, Payload};
use outlast_interfaces::pmc::{Activity, Count, Lock, Spent, Wait};
use outlast_interfaces::proc::{self, Stays};
use outlast_plugins::{Compiled, Error};
use std::time::{Duration, Instant};
use support::*;

fn threads(number: i32) -> Vec<Count> {
    let spent = Spent::time(Duration::from_millis(1));
    let thread = |thread| Count { thread, section: 7, run: 1, spent, slices: 1, activity: Activity::Runs, wait: None };
    (1..=number).map(thread).collect()
}

/// A core with the component `faulty`, which was told to protect `it` so, beside `ceiling`, which does not fail.
fn beside(way: &str) -> (Microkernel, Asked) {
    let (mut kernel, asked) = kernel();
    for (name, text) in [("faulty", way), ("ceiling", "2")] {
        kernel.load(plugin(name)).expect("it starts");
        kernel.protect(name, "it", settings(text)).expect("settings");
    }
    (kernel, asked)
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn a_component_is_told_of_threads_and_flags_a_program_that_has_too_many() {
    let (mut kernel, asked) = kernel();
    kernel.load(plugin("ceiling")).unwrap();
    kernel.protect("ceiling", "it", settings("3")).unwrap();
    kernel.raise(counted(&threads(3)));
    assert_eq!(flagged(&asked), []);
    kernel.raise(counted(&threads(4)));
    let why = Stays::Told("4 threads, and 3 is the most".into());
    assert_eq!(flagged(&asked), [proc::Hang { thread: 4, section: 7, has_moved: false, why }]);
    kernel.release("ceiling", "it").unwrap();
    kernel.raise(counted(&threads(4)));
    assert_eq!((flagged(&asked), kernel.take_notices()), (vec![], vec![]));
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn settings_that_a_component_does_not_understand_are_refused_in_its_own_words() {
    let (mut kernel, _) = kernel();
    kernel.load(plugin("ceiling")).unwrap();
    let refused = kernel.protect("ceiling", "it", settings("many"));
    assert_eq!(refused, Err(Failure::Told("settings: a number of threads, not \"many\"".into())));
    assert_eq!(kernel.take_notices(), []);
}

/// How each fails, and what is said of that.
const WAYS: [(&str, &str); 8] = [
    ("loop", "it took longer than it may"),
    ("fill", "it took longer than it may"),
    ("calls", "it took longer than it may"),
    ("chatter", "it took longer than it may"),
    ("flood", "it took more memory than it may"),
    ("trap", "it failed: wasm trap: wasm `unreachable` instruction executed"),
    ("panic", "it failed: wasm trap: wasm `unreachable` instruction executed"),
    ("wild", "it failed: wasm trap: out of bounds memory access"),
];

/// Its own stack is at the beginning of its memory; what of ours its calls take is bounded as well.
const DEPTHS: [(&str, &str); 2] = [
    ("deep", "it failed: wasm trap: out of bounds memory access"),
    ("calls itself", "it failed: wasm trap: call stack exhausted"),
];

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn a_component_that_fails_in_any_way_is_loaded_again_as_often_as_it_may_and_disturbs_no_one() {
    for (way, told) in WAYS.into_iter().chain(DEPTHS) {
        let (mut kernel, asked) = beside(&format!("third {way}"));
        let mut failures = Vec::new();
        for n in 0..15 {
            kernel.raise(counted(&threads(3)));
            assert_eq!(flagged(&asked).len(), 1, "{way}: the other one is told of event {n}");
            failures.extend(kernel.take_notices().into_iter().filter_map(|notice| match notice {
                Notice::Unloaded { module: "faulty", why, again } => Some((why.to_string(), again)),
                Notice::Said { .. } => None,
                notice => panic!("{way}: {notice:?}"),
            }));
        }
        let expected = [true, true, true, false].map(|again| (told.to_string(), again));
        assert_eq!(failures, expected, "{way}");
    }
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn one_that_fails_at_its_settings_is_no_end_of_ours_either() {
    for (way, _) in WAYS {
        let (mut kernel, _) = kernel();
        kernel.load(plugin("faulty")).unwrap();
        let began = Instant::now();
        let failed = kernel.protect("faulty", "it", settings(&format!("now {way}")));
        assert_eq!(failed, Err(Failure::Failed("faulty".into())), "{way}");
        assert!(began.elapsed() < Duration::from_secs(60), "{way} does not end");
        assert_eq!(kernel.modules().count(), 0, "{way}");
    }
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn what_a_component_says_is_bounded_and_nothing_that_a_terminal_obeys() {
    let (mut kernel, _) = beside("third chatter");
    (0..3).for_each(|_| kernel.raise(counted(&threads(1))));
    let notices = kernel.take_notices();
    let said: Vec<_> =
        notices.iter().filter_map(|n| if let Notice::Said { what, .. } = n { Some(what) } else { None }).collect();
    assert_eq!(said.len(), 4, "{notices:?}");
    assert!(said.iter().all(|what| what.chars().count() == 400 && !what.chars().any(char::is_control)));
    assert!(notices.iter().any(|n| matches!(n, Notice::Unloaded { why: Overrun::Time, .. })));
    let (mut kernel, _) = beside("third refuse");
    (0..3).for_each(|_| kernel.raise(counted(&threads(1))));
    let [Notice::Failed { module: "faulty", failure }] = &kernel.take_notices()[..] else { panic!("it refuses") };
    assert_eq!(failure.to_string().chars().filter(|c| !c.is_control()).count(), 400);
    // What it cannot do goes to the log as well.
    (0..3 * 1500).for_each(|_| kernel.raise(counted(&threads(1))));
    let failures: Vec<_> = kernel.take_notices().iter().map(Notice::to_string).collect();
    assert_eq!(failures.len(), 999);
    assert!(failures.iter().position(|failure| failure.ends_with("(and says no more)")) == Some(998));
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn files_that_are_none_are_told_of_in_words() {
    let refused = |bytes: &[u8]| Compiled::of(bytes).err().expect("refused").to_string();
    assert!(refused(b"").contains("no component"));
    assert!(refused(b"#!/bin/sh\n").contains("no component"));
    assert!(matches!(Compiled::of(b"\0asm\x01\0\0\0").err(), Some(Error::CoreModule)));
    let empty = b"\0asm\x0d\0\x01\0";
    assert!(matches!(Compiled::of(empty).err(), Some(Error::OtherWorld(_))), "{}", refused(empty));
    let whole = component("ceiling");
    assert!(refused(&whole[..whole.len() / 2]).contains("no component"));
}

/// Damaged components: whatever still fits is run. Nothing of it may be the end of this process.
#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn damaged_files_are_refused_or_run_within_their_bounds() {
    let whole = component("ceiling");
    let (mut refused, mut failed, mut ran) = (0, 0, 0);
    for seed in 0..500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = whole.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(8..bytes.len());
            bytes[at] = random.u8(..);
        }
        let Ok(compiled) = Compiled::of(&bytes) else {
            refused += 1;
            continue;
        };
        let (mut kernel, _) = kernel();
        let loaded = kernel.load(outlast_plugins::manifest("ceiling", "", compiled));
        let protects = loaded.and_then(|()| kernel.protect("ceiling", "it", settings("2")));
        (1..8).for_each(|number| kernel.raise(counted(&threads(number))));
        let notices = kernel.take_notices();
        let is_whole = protects.is_ok() && notices.is_empty();
        if is_whole {
            ran += 1
        } else {
            failed += 1
        }
    }
    assert!(refused > 0 && failed > 0 && ran > 0, "{refused} refused, {failed} failed, {ran} ran");
}

fn computes(spent: &mut Spent, ms: u64, random: &mut fastrand::Rng) {
    spent.time += Duration::from_millis(ms);
    spent.instructions = spent.instructions.map(|count| count + ms * random.u64(100_000..3_000_000));
}

/// A program's threads as they might be seen: most go on, some stay where they are or wait for each other.
fn looks(random: &mut fastrand::Rng) -> Vec<Vec<Count>> {
    let mut all: Vec<Count> = threads(random.i32(1..6));
    if random.bool() {
        all.iter_mut().for_each(|count| count.spent.instructions = Some(0));
    }
    let mut looks = Vec::new();
    let mut knot = 0;
    for _ in 0..600 {
        knot = if knot == 0 && random.u8(..) < 8 { 5 } else { knot.max(1) - 1 };
        let others = all.len() as i32;
        for count in &mut all {
            let owner = if knot > 0 && count.thread < 3 { 3 - count.thread } else { random.i32(1..=others) };
            let wait = Some(Wait { lock: Lock::Mutex, at: owner as u64, owner });
            if knot > 0 && count.thread < 3 {
                count.wait = wait;
            } else if random.u8(..) < 200 {
                count.run += 1;
                computes(&mut count.spent, random.u64(0..300), random);
                (count.section, count.wait) = (random.u64(0..4), None);
            } else {
                computes(&mut count.spent, random.u64(0..900), random);
                count.wait = wait.filter(|_| random.u8(..) < 60);
            }
        }
        looks.push(all.clone());
    }
    looks
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn the_detector_that_is_compiled_in_and_the_component_made_of_the_same_source_flag_the_same() {
    let (mut computing, mut waiting) = (0, 0);
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let limit = random.bool().then_some(600);
        let (mut native, native_asked) = kernel();
        native.load(outlast_modules::all().into_iter().find(|m| m.name == "hang").unwrap()).unwrap();
        let of_native = outlast_interfaces::hang::Settings::with_limit(limit.map(Duration::from_millis));
        native.protect("hang", "it", Payload::of(&of_native).unwrap()).unwrap();
        let (mut wasm, wasm_asked) = kernel();
        wasm.load(plugin("hang")).unwrap();
        let text = limit.map_or(String::new(), |limit| format!("{{\"limit_ms\": {limit}}}"));
        wasm.protect("hang", "it", settings(&text)).unwrap();
        let watch = |asked: &Asked| asked.borrow()[0].clone();
        assert_eq!(watch(&native_asked), watch(&wasm_asked), "they look as often");
        for (n, look) in looks(&mut random).iter().enumerate() {
            let also = match n % 97 {
                31 => {
                    Some(event(proc::NAME, proc::DIED, Payload::of(&proc::Death::plain(proc::End::Killed(9))).unwrap()))
                }
                64 => Some(event(proc::NAME, proc::RENEWED, Payload::NONE)),
                _ => None,
            };
            for event in also.into_iter().chain([counted(look)]) {
                native.raise(event.clone());
                wasm.raise(event);
            }
            let (of_native, of_wasm) = (flagged(&native_asked), flagged(&wasm_asked));
            assert_eq!(of_native, of_wasm, "seed {seed}, look {n}");
            let waits = of_native.iter().filter(|hang| matches!(hang.why, Stays::Deadlock(_))).count();
            waiting += waits;
            computing += of_native.len() - waits;
        }
        assert_eq!((native.take_notices(), wasm.take_notices()), (vec![], vec![]));
    }
    assert!(computing > 50 && waiting > 50, "{computing} that compute, {waiting} that wait");
}
