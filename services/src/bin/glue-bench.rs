//! What calls to a component, their tracking and its recovery cost, each beside a pipe's round trip in the same round.
//! `glue-bench [ROUNDS]`; everything runs on one processor, where a hand-over is a context switch.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use outlast_glue_rt::{Channel, Handle, Interrupted, Request, Spec, System};
use outlast_services::by_hand;
use outlast_services::stubs::lock::{operation, Client};

const CALLS: u32 = 2_000;
const DESCRIPTORS: u32 = 500;

fn main() {
    let rounds: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20);
    stay_on_one_processor();
    let program = std::env::current_exe().expect("this program").with_file_name("outlast-service");
    let mut system = System::new();
    let spec = Spec { name: "lock".into(), program, arguments: vec!["lock".into()] };
    let handle = system.start(spec).expect("the lock component starts");
    let channel = handle.grant().expect("a channel").open().expect("a channel");
    channel.spin(0);
    let client = Client::new(channel.clone());
    let raw_lock = raw_lock(&channel);
    let lock = client.lock_alloc().expect("a lock");
    let mut pipe = Pipe::new();
    let by_hand = by_hand::lock::Client::new(channel.clone());
    let own = by_hand.lock_alloc().expect("a lock");
    let mut seen: [(&str, Vec<f64>); 11] = [
        ("pipe round trip", Vec::new()),
        ("call", Vec::new()),
        ("tracking: of a call that changes nothing", Vec::new()),
        ("tracking: of one that takes or releases", Vec::new()),
        ("tracking: nothing (how exact this is)", Vec::new()),
        ("the same by hand: of a call that changes nothing", Vec::new()),
        ("the same by hand: of one that takes or releases", Vec::new()),
        ("micro-reboot, from the notice of the death", Vec::new()),
        ("kill until the first call is answered", Vec::new()),
        ("recovery of a descriptor, beyond the call", Vec::new()),
        ("the same by hand", Vec::new()),
    ];
    let mut raw_lock = raw_lock;
    for _ in 0..rounds {
        let mut note = |at: usize, micros: f64| seen[at].1.push(micros);
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
    println!("{:<44} {:>8} {:>8} {:>8}  (microseconds, {rounds} rounds)", "", "quartile", "median", "quartile");
    for (name, values) in &mut seen {
        values.sort_by(f64::total_cmp);
        let at = |part: usize| values[(values.len() - 1) * part / 4];
        println!("{name:<44} {:>8.2} {:>8.2} {:>8.2}", at(1), at(2), at(3));
    }
}

/// Microseconds of one of so many.
fn each(count: u32, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..count).for_each(|_| work());
    start.elapsed().as_secs_f64() * 1e6 / f64::from(count)
}

/// Microseconds of one, and what the other takes beyond it: they take turns, so that whatever else happens happens to both.
fn beside(count: u32, one: impl Fn(), other: impl Fn()) -> (f64, f64) {
    let mut sums = [Duration::ZERO; 2];
    let timed = |work: &dyn Fn()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    for turn in 0..count {
        // Who comes first may find the other's traces in caches: they take turns in that, too.
        for which in [turn as usize % 2, 1 - turn as usize % 2] {
            sums[which] += if which == 0 { timed(&one) } else { timed(&other) };
        }
    }
    let [one, other] = sums.map(|sum| sum.as_secs_f64() * 1e6 / f64::from(count));
    (one, other - one)
}

/// A lock as the component itself calls it.
fn raw_lock(channel: &Channel) -> u64 {
    loop {
        let request = Request { operation: operation::LOCK_ALLOC, epoch: channel.epoch(), ..Request::default() };
        match channel.call(&request) {
            Ok(reply) => return reply.words[0],
            Err(Interrupted::Fault { .. }) => {}
            Err(Interrupted::Failed(error)) => panic!("{error}"),
        }
    }
}

fn kill(handle: &Handle) -> Instant {
    let deaths = handle.deaths().0;
    let start = Instant::now();
    let instance = handle.instance() as libc::pid_t;
    assert!(instance > 1, "the component serves");
    // SAFETY: plain call; the number is that of our component's process.
    unsafe { libc::kill(instance, libc::SIGKILL) };
    while handle.deaths().0 == deaths && start.elapsed() < Duration::from_secs(10) {
        std::thread::yield_now();
    }
    start
}

fn stay_on_one_processor() {
    // SAFETY: a zeroed set is valid; one that runs here is set in it. Children inherit it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu().max(0) as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// `cat`, which sends back what it gets.
struct Pipe {
    echo: std::process::Child,
}

impl Pipe {
    fn new() -> Self {
        let piped = std::process::Stdio::piped;
        let echo = std::process::Command::new("cat").stdin(piped()).stdout(piped()).spawn();
        Self { echo: echo.expect("cat") }
    }

    fn round_trip(&mut self) {
        let mut byte = [1];
        self.echo.stdin.as_mut().expect("piped").write_all(&byte).expect("a byte");
        self.echo.stdout.as_mut().expect("piped").read_exact(&mut byte).expect("a byte");
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        drop(self.echo.stdin.take());
        let _ = self.echo.wait();
    }
}
