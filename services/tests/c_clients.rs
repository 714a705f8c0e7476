//! Events, timers, threads and files through micro-reboots, with clients in C, and events with a component in C.

#[path = "support/c.rs"]
mod c;
mod support;
#[path = "support/watched.rs"]
mod watched;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use outlast_glue::Mechanism;
use outlast_glue_rt::System;
use support::{start_program, Chance};
use watched::{watch, Ended};

const SERVICE: &str = env!("CARGO_BIN_EXE_outlast-service");

/// A component's program and its arguments.
type Program<'a> = (&'a Path, &'a [&'a str]);

/// A client's program, run once while a component is killed.
fn run(component: Program, grants: &[&str], client: &Path, arguments: &[&str], patience: u64) -> Ended {
    let mut system = System::new();
    let handle = start_program(&mut system, "component", component.0, component.1);
    let mut command = Command::new(client);
    command.args(arguments);
    let ended = watch(&handle, grants, command, Duration::from_secs(patience));
    println!("{} kills", ended.kills);
    ended
}

/// Until there were kills enough: it ends well each time, and says what is expected.
fn always(expected: impl Fn(&str) -> bool, once: impl Fn() -> Ended) {
    let mut kills = 0;
    while kills < 15 {
        let ended = once();
        assert!(ended.success == Some(true) && expected(ended.output.trim()), "{ended:?}");
        kills += ended.kills;
    }
}

const ROUNDS: &str = "10000";
const BOTH: [&str; 2] = ["here", "there"];

#[test]
fn every_trigger_of_a_client_in_c_is_waited_for_once_while_the_component_is_killed() {
    let client = c::client("ping_pong", "event", None);
    let component = c::component("event", None);
    let both: [Program; 2] = [(SERVICE.as_ref(), &["event"]), (&component.program, &[])];
    for component in both {
        always(|said| said == ROUNDS, || run(component, &BOTH, &client.program, &[ROUNDS], 120));
    }
}

#[test]
fn without_r0_in_c_a_trigger_is_lost() {
    let client = c::client("ping_pong", "event", Some(Mechanism::R0));
    // Both wait for ever, or until there was a death too many at a call, where they need less than a second otherwise.
    let mut ends = (0..10).map(|_| run((SERVICE.as_ref(), &["event"]), &BOTH, &client.program, &[ROUNDS], 10).success);
    assert!(ends.any(|success| success != Some(true)));
}

#[test]
fn without_u0_in_c_nobody_recovers_what_another_client_needs() {
    let client = c::client("ping_pong", "event", Some(Mechanism::U0));
    let ended = run((SERVICE.as_ref(), &["event"]), &BOTH, &client.program, &["100000"], 120);
    assert!(ended.success == Some(false) && ended.errors.contains("(errno 130)"), "{ended:?}");
}

#[test]
fn without_g0_in_c_the_component_does_not_know_what_another_client_needs() {
    let client = c::client("ping_pong", "event", None);
    let component = c::component("event", Some(Mechanism::G0));
    let ended = run((&component.program, &[]), &BOTH, &client.program, &["100000"], 120);
    assert!(ended.success == Some(false) && ended.errors.contains("(errno 9)"), "{ended:?}");
}

#[test]
fn no_period_of_a_client_in_c_is_lost_or_counted_twice_while_the_component_is_killed() {
    let client = c::client("periods", "timer", None);
    let timer: Program = (SERVICE.as_ref(), &["timer"]);
    always(
        |said| said.parse::<u32>().is_ok_and(|count| count >= 200),
        || run(timer, &["timer"], &client.program, &["200"], 120),
    );
}

#[test]
fn threads_of_clients_in_c_wake_each_other_once_and_run_one_at_a_time_while_the_scheduler_is_killed() {
    let client = c::client("threads", "scheduler", None);
    let scheduler: Program = (SERVICE.as_ref(), &["scheduler"]);
    always(|said| said == "3000", || run(scheduler, &BOTH, &client.program, &["3000"], 120));
}

fn files(client: &Path, steps: &str, patience: u64) -> Ended {
    let folder = tempfile::tempdir().expect("a folder");
    let seed = Chance::new().below(1 << 32).to_string();
    println!("files: seed {seed}");
    let arguments = [&seed, steps, &folder.path().to_string_lossy()];
    run((SERVICE.as_ref(), &["fs"]), &["fs"], client, &arguments, patience)
}

#[test]
fn a_client_in_c_cannot_tell_the_file_system_from_the_kernels_while_it_is_killed() {
    let client = c::client("files", "fs", None);
    always(|said| said == "6000", || files(&client.program, "6000", 120));
}

#[test]
fn without_d1_in_c_a_file_is_looked_for_below_a_folder_of_the_dead() {
    let client = c::client("files", "fs", Some(Mechanism::D1));
    let ended = files(&client.program, "100000000", 120);
    assert_eq!(ended.success, Some(false), "{ended:?}");
}
