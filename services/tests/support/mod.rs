//! Components for tests, and what harms them.

#![allow(dead_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outlast_glue_rt::{Handle, Spec, System};

pub fn start(system: &mut System, service: &str) -> Handle {
    start_program(system, service, env!("CARGO_BIN_EXE_outlast-service").as_ref(), &[service])
}

pub fn start_program(system: &mut System, name: &str, program: &std::path::Path, arguments: &[&str]) -> Handle {
    let arguments = arguments.iter().map(ToString::to_string).collect();
    let spec = Spec { name: name.into(), program: program.into(), arguments };
    system.start(spec).expect("the component starts")
}

/// The same numbers for the same seed; OUTLAST_SEED reproduces a run.
pub struct Chance(u64);

impl Chance {
    pub fn new() -> Self {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        let seed = std::env::var("OUTLAST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed: u64 = seed.unwrap_or(u64::from(clock.subsec_nanos()));
        println!("OUTLAST_SEED={seed}");
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Another one, which gives other numbers, the same for the same seed.
    pub fn fork(&mut self) -> Self {
        Self(self.below(u64::MAX) | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

pub fn kill(process: u32, signal: i32) {
    // None at this moment: nothing to harm.
    if process > 1 {
        // SAFETY: plain call; the number is that of a process of ours, which was not known to be dead just now.
        unsafe { libc::kill(process as libc::pid_t, signal) };
    }
}

/// All of its threads are: they are not at once.
pub fn stopped(process: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("a process");
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    })
}

/// The process that serves, once there is one.
pub fn alive(handle: &Handle) -> u32 {
    await_that(|| handle.instance() != 0 || handle.given_up());
    handle.instance()
}

/// Returns when its template has seen the death.
pub fn kill_instance(handle: &Handle) {
    let deaths = handle.deaths().0;
    let instance = alive(handle);
    kill(instance, libc::SIGKILL);
    await_that(|| handle.deaths().0 > deaths || handle.given_up());
}

/// Kills the component at random moments while `work` is going on; how often.
pub fn while_killed<T>(handle: &Handle, chance: &mut Chance, work: impl FnOnce() -> T) -> (T, u32) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &over;
        let killer = scope.spawn(move || {
            let mut kills = 0;
            while !over.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_micros(500 + chance.below(9_500)));
                kill_instance(handle);
                kills += 1;
            }
            kills
        });
        // Also if the work panics: else nobody would ever hear of it.
        let ending = Ending(over);
        let result = work();
        drop(ending);
        (result, killer.join().expect("the killer"))
    })
}

struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Generous: a test that waits so long has failed.
pub fn await_that(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited for a minute in vain");
        std::thread::sleep(Duration::from_micros(200));
    }
}
