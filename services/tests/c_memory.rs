//! Memory that components share, with clients in C and a memory manager in C: as in `memory.rs`.

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
use support::start_program;
use watched::{watch, Ended};

const ROUNDS: &str = "1500";
const SERVICE: &str = env!("CARGO_BIN_EXE_outlast-service");

fn run(component: (&Path, &[&str]), client: &Path, rounds: &str) -> Ended {
    let mut system = System::new();
    let handle = start_program(&mut system, "memory", component.0, component.1);
    let mut command = Command::new(client);
    command.arg(rounds);
    let ended = watch(&handle, &["first", "second", "third"], command, Duration::from_secs(120));
    println!("{} kills", ended.kills);
    ended
}

#[test]
fn what_clients_in_c_share_is_there_until_it_is_revoked_while_the_component_is_killed() {
    let client = c::client("pages", "memory", None);
    let component = c::component("memory", None);
    let both: [(&Path, &[&str]); 2] = [(SERVICE.as_ref(), &["memory"]), (&component.program, &[])];
    for component in both {
        let mut kills = 0;
        while kills < 15 {
            let ended = run(component, &client.program, ROUNDS);
            assert!(ended.success == Some(true) && ended.output.trim() == ROUNDS, "{ended:?}");
            kills += ended.kills;
        }
    }
}

#[test]
fn without_d0_in_c_aliases_outlive_their_page() {
    let client = c::client("pages", "memory", Some(Mechanism::D0));
    let component = c::component("memory", Some(Mechanism::D0));
    let ended = run((&component.program, &[]), &client.program, "1000000");
    assert!(ended.success == Some(false) && !ended.errors.is_empty(), "{ended:?}");
}
