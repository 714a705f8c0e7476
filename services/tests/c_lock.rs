//! Locks through micro-reboots, with a client, a component or both in C: as in `lock.rs`.

#[path = "support/c.rs"]
mod c;
#[path = "support/contend.rs"]
mod contend;
#[path = "support/held.rs"]
mod held;
mod support;
#[path = "support/watched.rs"]
mod watched;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use contend::{contend, Seen, THREADS};
use held::{outlives_templates, stays_held};
use outlast_glue::Mechanism;
use outlast_glue_rt::System;
use outlast_services::stubs::lock::Client;
use support::{start, start_program};

const ROUNDS: u32 = 150;
const SERVICE: &str = env!("CARGO_BIN_EXE_outlast-service");
const CONTENDERS: &str = env!("CARGO_BIN_EXE_lock-contenders");

/// All get their turns, one at a time, however often the component is killed.
fn take_turns(component: (&Path, &[&str]), client: &Path) {
    let mut all = 0;
    while all < 15 {
        let mut system = System::new();
        let handle = start_program(&mut system, "lock", component.0, component.1);
        let (seen, kills) = contend(&handle, Command::new(client), ROUNDS, None, Duration::from_secs(120));
        println!("{kills} kills");
        assert_eq!(seen, Seen::Right((THREADS * ROUNDS) as usize));
        all += kills;
    }
}

#[test]
fn one_thread_at_a_time_of_a_client_in_c_holds_a_lock_whose_component_is_killed_again_and_again() {
    take_turns((SERVICE.as_ref(), &["lock"]), &c::client("contenders", "lock", None).program);
}

#[test]
fn one_thread_at_a_time_holds_a_lock_whose_component_in_c_is_killed_again_and_again() {
    take_turns((&c::component("lock", None).program, &[]), CONTENDERS.as_ref());
}

#[test]
fn client_and_component_in_c_are_as_those_in_rust() {
    let client = c::client("contenders", "lock", None);
    take_turns((&c::component("lock", None).program, &[]), &client.program);
}

fn without(mechanism: Mechanism, rounds: u32, patience: u64) -> Seen {
    let client = c::client("contenders", "lock", Some(mechanism));
    let mut system = System::new();
    let handle = start(&mut system, "lock");
    contend(&handle, Command::new(&client.program), rounds, None, Duration::from_secs(patience)).0
}

#[test]
fn without_r0_in_c_a_lock_that_is_held_is_free_again() {
    let mut seen = (0..20).map(|_| without(Mechanism::R0, 300, 20));
    assert!(seen.any(|seen| seen != Seen::Right((THREADS * 300) as usize)));
}

#[test]
fn without_t0_in_c_threads_sleep_for_ever_in_a_dead_component() {
    assert_eq!(without(Mechanism::T0, 5_000, 4), Seen::Stuck);
}

#[test]
fn without_t1_in_c_a_descriptor_of_the_dead_is_used() {
    assert_eq!(without(Mechanism::T1, 2_000, 60), Seen::Failed);
}

#[test]
fn a_lock_of_a_component_in_c_stays_held_through_a_micro_reboot_and_its_waiter_waits_on() {
    let component = c::component("lock", None);
    let mut system = System::new();
    let handle = start_program(&mut system, "lock", &component.program, &[]);
    let client = Client::new(handle.grant().expect("a channel").open().expect("a channel"));
    stays_held(&handle, &client);
}

#[test]
fn a_template_of_a_component_in_c_that_dies_is_started_again_and_nobody_notices() {
    let component = c::component("lock", None);
    let mut system = System::new();
    let handle = start_program(&mut system, "lock", &component.program, &[]);
    let client = Client::new(handle.grant().expect("a channel").open().expect("a channel"));
    outlives_templates(&handle, &client);
}
