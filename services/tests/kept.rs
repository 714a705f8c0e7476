//! Systems that are kept: modules decide about deaths, and a log tells of them.

#[path = "support/policies.rs"]
mod policies;
mod support;

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use outlast_core::Payload;
use outlast_glue_log::{Line, SystemLog};
use outlast_glue_rt::{CallError, Handle, Keeping, Spec, System, SystemError};
use outlast_interfaces::hang::OfComponent;
use outlast_interfaces::reboot;
use outlast_services::stubs::lock::Client;
use outlast_supervisor::log::{Kind, FILE};
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::Error;
use policies::{KEYSTONE, LOOPS, MAY_END, PANICS, STRICT};
use support::{alive, await_that, kill, kill_instance, start, start_program, stopped};

/// A state folder with the log of one system.
struct State(tempfile::TempDir);

impl State {
    fn new() -> Self {
        Self(tempfile::Builder::new().prefix("outlast-test.").tempdir_in("/dev/shm").expect("a folder"))
    }

    fn log(&self) -> Result<SystemLog, Error> {
        SystemLog::create_in(&StateFolder::open_at(self.0.path().into())?, "shop")
    }

    fn lines(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(self.0.path().join("shop").join(FILE)).expect("a log");
        text.lines().map(|line| serde_json::from_str(line).expect("a line")).collect()
    }

    /// Once there are so many.
    fn of(&self, kind: Kind, count: usize) -> Vec<Line> {
        let all = || self.lines().into_iter().filter(|line| line.entry.event == kind).collect::<Vec<_>>();
        await_that(|| all().len() >= count);
        all()
    }

    fn system(&self, keeping: Keeping) -> System {
        System::kept(keeping.tell(self.log().expect("a name"))).expect("modules")
    }
}

fn client(handle: &Handle) -> Client {
    Client::new(handle.grant().expect("a channel").open().expect("a channel"))
}

fn cause(line: &Line) -> &str {
    line.entry.cause.as_deref().expect("a cause")
}

#[test]
fn a_log_tells_of_deaths_hangs_and_micro_reboots_and_of_what_was_recovered() {
    let state = State::new();
    let mut system = state.system(Keeping::new());
    let handle = start(&mut system, "lock");
    let client = client(&handle);
    let locks: Vec<u64> = (0..5).map(|_| client.lock_alloc().expect("a lock")).collect();
    let instance = alive(&handle);
    kill_instance(&handle);
    let died = &state.of(Kind::Killed, 1)[0];
    assert_eq!((died.component.as_str(), died.entry.pid), ("lock", Some(instance as i32)));
    assert_eq!((died.descriptors, died.recovered, died.completed), (Some(5), Some(0), Some(5)));
    assert!(cause(died).starts_with("SIGKILL in lock"), "{died:?}");
    for lock in &locks[..3] {
        client.lock_take(*lock, 1).expect("free");
    }
    assert_eq!((handle.descriptors(), handle.recovered()), (3, 3));
    let recovered = &state.of(Kind::Recovered, 1)[0];
    assert_eq!(recovered.entry.pid, Some(alive(&handle) as i32));
    assert_eq!(cause(recovered), "SIGKILL in lock");
    assert!(recovered.entry.duration_us.is_some_and(|took| took > 0.0), "{recovered:?}");

    let hangs = alive(&handle);
    kill(hangs, libc::SIGSTOP);
    await_that(|| stopped(hangs));
    assert_eq!(client.lock_release(locks[0], 1), Ok(0));
    // More than one on a machine that gives the next one no processor for as long as a hang is given.
    let hung = state.of(Kind::Hung, 1);
    assert!(hung.iter().any(|line| line.entry.pid == Some(hangs as i32)), "{hung:?}");
    let died = state.of(Kind::Killed, 2);
    let of_it = died.iter().find(|line| line.entry.pid == Some(hangs as i32)).expect("its death");
    assert!(cause(of_it).starts_with("a hang in lock") && of_it.recovered == Some(3), "{of_it:?}");

    kill(handle.template(), libc::SIGTERM);
    let template = state.of(Kind::Killed, died.len() + 1).pop().expect("one more");
    assert_eq!(cause(&template), "SIGTERM in the process that lock is forked from");
    assert_eq!(client.lock_release(locks[1], 1), Ok(0));

    drop(system);
    let lines = state.lines();
    let ends = [&lines[0], &lines[lines.len() - 1]].map(|line| (line.entry.event, line.component.as_str()));
    assert_eq!(ends, [(Kind::Start, "lock"), (Kind::Exit, "lock")]);
}

#[test]
fn a_manager_says_when_calls_hang() {
    let state = State::new();
    let short = OfComponent { still: Duration::from_secs(1000), alone: Duration::from_millis(200) };
    let mut system = state.system(Keeping::new().hang(short));
    let handle = start(&mut system, "lock");
    let client = client(&handle);
    let lock = client.lock_alloc().expect("a lock");
    let hangs = alive(&handle);
    kill(hangs, libc::SIGSTOP);
    await_that(|| stopped(hangs));
    assert_eq!(client.lock_take(lock, 1), Ok(0));
    // More than one on a machine that gives the next one no processor for as long.
    let hung = state.of(Kind::Hung, 1);
    let of_it = hung.iter().find(|line| line.entry.pid == Some(hangs as i32)).expect("it hung");
    assert!(cause(of_it).starts_with("lock: operation 2 has not ended for "), "{of_it:?}");
}

#[test]
fn a_name_is_of_one_system_as_long_as_that_runs() {
    let state = State::new();
    let system = state.system(Keeping::new());
    assert!(matches!(state.log(), Err(Error::NameTaken(_))));
    drop(system);
    assert!(state.log().is_ok() && state.lines().is_empty());
}

#[test]
fn a_module_decides_when_a_component_is_given_up() {
    let state = State::new();
    let mut system = state.system(Keeping::new().module(STRICT, Payload::NONE));
    let handle = start(&mut system, "lock");
    let client = client(&handle);
    let lock = client.lock_alloc().expect("a lock");
    kill_instance(&handle);
    await_that(|| handle.given_up());
    assert_eq!((client.lock_take(lock, 1), handle.deaths().0), (Err(CallError::GivenUp), 1));
    assert_eq!(cause(&state.of(Kind::GaveUp, 1)[0]), "lock: a single death");
    assert_eq!(cause(&state.of(Kind::ModuleSaid, 1)[0]), "strict: serves of lock");
    // Another one is none the worse.
    assert!(start(&mut system, "event").instance() != 0);
}

#[test]
fn a_module_has_all_components_end_for_one() {
    let state = State::new();
    let mut system = state.system(Keeping::new().module(KEYSTONE, Payload::NONE));
    let program = env!("CARGO_BIN_EXE_outlast-service");
    let [keystone, other] =
        ["keystone", "other"].map(|name| start_program(&mut system, name, program.as_ref(), &["lock"]));
    let clients = [client(&keystone), client(&other)];
    let locks = clients.each_ref().map(|client| client.lock_alloc().expect("a lock"));
    kill_instance(&other);
    assert_eq!(clients[1].lock_take(locks[1], 1), Ok(0));
    assert_eq!(system.ended(), None);
    kill_instance(&keystone);
    await_that(|| keystone.given_up() && other.given_up());
    for (client, lock) in clients.iter().zip(locks) {
        assert_eq!(client.lock_pretake(lock, 1), Err(CallError::GivenUp));
    }
    assert_eq!(system.ended().as_deref(), Some("nothing goes without it"));
    let spec = Spec { name: "late".into(), program: program.into(), arguments: vec!["lock".into()] };
    assert!(matches!(system.start(spec), Err(SystemError::Ended(_))));
}

#[test]
fn the_bound_on_crash_loops_is_a_setting_of_a_module() {
    let state = State::new();
    let few = Payload::of(&reboot::Settings { fruitless: 3 }).expect("settings");
    let mut system = state.system(Keeping::new().module(outlast_modules::of_components()[0], few));
    let handle = start(&mut system, "lock");
    let client = client(&handle);
    let lock = client.lock_alloc().expect("a lock");
    for _ in 0..5 {
        kill_instance(&handle);
        assert_eq!(client.lock_pretake(lock, 1), Ok(1));
    }
    let mut last = 0;
    while !handle.given_up() {
        let instance = handle.instance();
        if instance != 0 && instance != last {
            kill(instance, libc::SIGKILL);
            last = instance;
        }
        std::thread::yield_now();
    }
    let why = "lock: it died 3 times in a row without serving a call";
    assert_eq!(cause(&state.of(Kind::GaveUp, 1)[0]), why);
}

#[test]
fn a_module_that_fails_leaves_the_decision_to_the_next_one() {
    let state = State::new();
    let mut system = state.system(Keeping::new().module(PANICS, Payload::NONE));
    let handle = start(&mut system, "lock");
    let client = client(&handle);
    let lock = client.lock_alloc().expect("a lock");
    for _ in 0..3 {
        kill_instance(&handle);
        assert_eq!(client.lock_pretake(lock, 1), Ok(1));
    }
    let failed = state.of(Kind::ModuleFailed, 1);
    assert_eq!(failed.len(), 1);
    assert!(cause(&failed[0]).starts_with("panics: it panicked: as it is meant to"), "{failed:?}");
}

#[test]
fn where_a_module_does_not_come_to_an_end_components_decide_by_themselves() {
    let state = State::new();
    let mut system = state.system(Keeping::new().module(LOOPS, Payload::NONE));
    let handle = start(&mut system, "lock");
    let client = client(&handle);
    let lock = client.lock_alloc().expect("a lock");
    for _ in 0..2 {
        kill_instance(&handle);
        assert_eq!(client.lock_pretake(lock, 1), Ok(1));
    }
    MAY_END.store(true, SeqCst);
    let failed = state.of(Kind::ModuleFailed, 1);
    assert_eq!(cause(&failed[0]), "nobody decided in time about a death");
}
