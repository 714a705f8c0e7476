//! Modules that fail in every way there is.

use super::*;
use crate::confine::Overrun;
use std::cell::Cell;
use std::hint::black_box;
use std::time::Duration;

fn good() -> Box<dyn Module> {
    Box::new(Listener { name: "good", events: &["tick"], body: idle, clock: None })
}

thread_local! {
    static EVENTS: Cell<u32> = const { Cell::new(0) };
}

fn every_third() -> Box<dyn Module> {
    let body = |_: &mut Calls, _, _: &Event| {
        EVENTS.set(EVENTS.get() + 1);
        assert!(EVENTS.get() % 3 != 0, "the third");
        Ok(())
    };
    Box::new(Listener { name: "bad", events: &["tick"], body, clock: None })
}

fn panics_at_start() -> Box<dyn Module> {
    struct Never;
    impl Module for Never {
        fn start(&mut self, _: &mut Calls) -> Result<(), Failure> {
            panic!("at once")
        }
        fn protect(&mut self, _: &mut Calls, _: &str, _: &Payload) -> Result<(), Failure> {
            Ok(())
        }
        fn on_event(&mut self, _: &mut Calls, _: &Event) -> Result<(), Failure> {
            Ok(())
        }
    }
    Box::new(Never)
}

fn slow() -> Box<dyn Module> {
    let body = |_: &mut Calls, _, _: &Event| {
        std::thread::sleep(Duration::from_millis(30));
        Ok(())
    };
    Box::new(Listener { name: "slow", events: &["tick"], body, clock: None })
}

fn hoarder() -> Box<dyn Module> {
    let body = |_: &mut Calls, _, _: &Event| {
        black_box(vec![1u8; 2 << 20]).leak();
        Ok(())
    };
    Box::new(Listener { name: "hoarder", events: &["tick"], body, clock: None })
}

#[test]
fn a_module_that_panics_on_every_third_event_disturbs_no_one() {
    let (mut kernel, wanted) = kernel();
    kernel.load(Manifest { reloads: 100, ..manifest("bad", every_third) }).unwrap();
    kernel.load(manifest("good", good)).unwrap();
    kernel.protect("bad", "db", Payload::of(&1u64).unwrap()).unwrap();
    for _ in 0..30 {
        kernel.raise(tick("tick", None));
    }
    let told = told();
    assert_eq!(told.iter().filter(|what| *what == "good tick").count(), 30);
    assert_eq!(told.iter().filter(|what| *what == "bad tick").count(), 30);
    assert_eq!(told.iter().filter(|what| *what == "bad protects db 1").count(), 11, "again after each failure");
    let notice = Notice::Unloaded { module: "bad", why: Overrun::Panic("the third".into()), again: true };
    assert_eq!(kernel.take_notices(), vec![notice; 10]);
    let others = wanted.borrow().iter().filter(|(_, what)| *what != "less").count();
    assert_eq!(others, 1, "the good one has the event all the time");
}

#[test]
fn one_that_is_not_to_be_loaded_again_is_gone_with_all_it_asked_for() {
    let (mut kernel, _) = kernel();
    kernel.load(Manifest { reloads: 1, ..manifest("bad", every_third) }).unwrap();
    for _ in 0..10 {
        kernel.raise(tick("tick", None));
    }
    assert_eq!(told().len(), 6);
    let again: Vec<_> = kernel
        .take_notices()
        .into_iter()
        .map(|notice| matches!(notice, Notice::Unloaded { again: true, .. }))
        .collect();
    assert_eq!(again, [true, false]);
    assert_eq!(kernel.modules().count(), 0);
    assert!(kernel.pins().all(|(_, loaded)| !loaded));
}

fn says_and_fails() -> Box<dyn Module> {
    let body = |calls: &mut Calls, _, _: &Event| {
        calls.say("going".into());
        calls.fail(Overrun::Fault("its guest fell".into()));
        calls.fail(Overrun::Time);
        Err(Failure::Told("not told of: it is gone".into()))
    };
    Box::new(Listener { name: "guest", events: &["tick"], body, clock: None })
}

#[test]
fn one_that_says_of_itself_that_it_failed_is_unloaded_when_it_returns() {
    let (mut kernel, _) = kernel();
    kernel.load(Manifest { reloads: 1, ..manifest("guest", says_and_fails) }).unwrap();
    for again in [true, false] {
        kernel.raise(tick("tick", None));
        let said = Notice::Said { module: "guest", what: "going".into() };
        let why = Overrun::Fault("its guest fell".into());
        assert_eq!(kernel.take_notices(), [said, Notice::Unloaded { module: "guest", why, again }]);
    }
    assert_eq!(kernel.modules().count(), 0);
}

#[test]
fn one_that_fails_at_its_start_is_not_loaded() {
    let (mut kernel, _) = kernel();
    assert!(kernel.load(Manifest { reloads: 3, ..manifest("never", panics_at_start) }).is_err());
    assert_eq!(kernel.modules().count(), 0);
    assert_eq!(kernel.take_notices().len(), 4, "tried as often as it may be loaded again");
}

#[test]
fn one_that_took_too_long_is_unloaded_when_it_comes_back() {
    let (mut kernel, _) = kernel();
    let budget = Budget { time: Duration::from_millis(5), ..Budget::default() };
    kernel.load(Manifest { budget, ..manifest("slow", slow) }).unwrap();
    kernel.raise(tick("tick", None));
    let notice = Notice::Unloaded { module: "slow", why: Overrun::Time, again: false };
    assert_eq!(kernel.take_notices(), [notice]);
}

#[test]
fn one_that_keeps_too_much_memory_is_unloaded_when_it_comes_back() {
    let (mut kernel, _) = kernel();
    let budget = Budget { memory: 1 << 20, ..Budget::default() };
    kernel.load(Manifest { budget, ..manifest("hoarder", hoarder) }).unwrap();
    kernel.raise(tick("tick", None));
    let notice = Notice::Unloaded { module: "hoarder", why: Overrun::Memory, again: false };
    assert_eq!(kernel.take_notices(), [notice]);
}

/// What the way out tells by the status of the process.
fn status(why: &Overrun) -> i32 {
    match why {
        Overrun::Panic(_) => 1,
        Overrun::Fault(_) => 4,
        Overrun::Time => 2,
        Overrun::Memory => 3,
        Overrun::Trap(signal) => 100 + signal,
    }
}

/// In which way a process made by this test is to behave; `open` or `blocked`: whether signals are.
const CHILD: &str = "OUTLAST_CORE_TESTS_CHILD";

/// Runs a test of this file again in a process of its own, which is to behave in the way `what`; the status that it exited with.
fn in_a_process(test: &str, what: &str) -> i32 {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", &format!("tests::confinement::{test}"), "--nocapture"]).env(CHILD, what);
    let output = child.output().unwrap();
    output.status.code().unwrap_or_else(|| panic!("the way out was not taken: {output:?}"))
}

/// For the test in the process of its own: what it is to do. Gives faults back what they do to a program, and blocks signals.
fn as_a_process() -> Option<String> {
    let what = std::env::var(CHILD).ok()?;
    // SAFETY: plain system calls; the test's own handlers, which tell of deep stacks, are none that a program has.
    unsafe {
        libc::signal(libc::SIGSEGV, libc::SIG_DFL);
        libc::signal(libc::SIGBUS, libc::SIG_DFL);
        if what.ends_with("blocked") {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        }
    }
    confine::guard(|name, why| {
        // SAFETY: plain system call.
        unsafe { libc::_exit(if name == "guarded" { status(&why) } else { 99 }) }
    });
    Some(what)
}

fn guarded(body: Body) -> Box<dyn Module> {
    Box::new(Listener { name: "guarded", events: &["tick"], body, clock: None })
}

fn endless() -> Box<dyn Module> {
    guarded(|_, _, _| loop {
        black_box(0);
    })
}

fn flood() -> Box<dyn Module> {
    guarded(|_, _, _| {
        let mut all = Vec::new();
        loop {
            all.push(black_box(vec![1u8; 4096]));
        }
    })
}

fn wild() -> Box<dyn Module> {
    guarded(|_, _, _| {
        // SAFETY: none; that is what is tried.
        unsafe { black_box(16 as *mut u8).write_volatile(1) };
        Ok(())
    })
}

fn deep() -> Box<dyn Module> {
    fn down(n: u64) -> u64 {
        let room = black_box([n; 512]);
        if n == u64::MAX {
            0
        } else {
            down(n + 1) + room[7]
        }
    }
    guarded(|_, _, _| Err(Failure::NoSuchPin(down(0).to_string())))
}

/// How each fails, and the status of the process.
type Way = (&'static str, fn() -> Box<dyn Module>, i32);

const WAYS: [Way; 7] = [
    ("endless", endless, 2),
    ("flood", flood, 3),
    ("wild", wild, 100 + libc::SIGSEGV),
    ("abort", || guarded(|_, _, _| std::process::abort()), 100 + libc::SIGABRT),
    ("deep", deep, 100 + libc::SIGSEGV),
    ("panics", || guarded(|_, _, _| panic!("as ever")), 1),
    ("good", || guarded(idle), 0),
];

#[test]
fn what_cannot_be_left_otherwise_is_left_by_the_way_out() {
    if let Some(what) = as_a_process() {
        let (_, make, _) = WAYS.into_iter().find(|(name, ..)| what.starts_with(name)).unwrap();
        let (mut kernel, _) = kernel();
        // Whoever fails otherwise has the time for it on any machine.
        let time = Duration::from_millis(if what.starts_with("endless") { 20 } else { 20_000 });
        let budget = Budget { time, memory: 8 << 20 };
        kernel.load(Manifest { budget, ..manifest("guarded", make) }).unwrap();
        kernel.raise(tick("tick", None));
        std::process::exit(match kernel.take_notices().as_slice() {
            [Notice::Unloaded { why, .. }] => status(why),
            _ => 0,
        });
    }
    for (name, _, expected) in WAYS {
        for signals in ["open", "blocked"] {
            let got =
                in_a_process("what_cannot_be_left_otherwise_is_left_by_the_way_out", &format!("{name} {signals}"));
            assert_eq!(got, expected, "{name}, signals {signals}");
        }
    }
}

/// The owner reads its signals from a descriptor; one that comes while a module runs must be there afterwards.
#[test]
fn a_signal_that_somebody_sends_meanwhile_stays_for_its_reader() {
    if as_a_process().is_some() {
        // SAFETY: plain system calls on structures of ours. The signal is for this thread: others do not have it blocked.
        let is_there = unsafe {
            let mut sent: libc::siginfo_t = std::mem::zeroed();
            (sent.si_signo, sent.si_code) = (libc::SIGSEGV, libc::SI_QUEUE);
            let (process, thread) = (libc::getpid(), libc::gettid());
            let send = || libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, libc::SIGSEGV, &sent);
            let result = confine::run("it", Budget::default(), send);
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            let got = libc::sigtimedwait(&all, &mut info, &zero);
            result == Ok(0) && got == libc::SIGSEGV && info.si_code == libc::SI_QUEUE
        };
        std::process::exit(i32::from(!is_there));
    }
    assert_eq!(in_a_process("a_signal_that_somebody_sends_meanwhile_stays_for_its_reader", "blocked"), 0);
}
