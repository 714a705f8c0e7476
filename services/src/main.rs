//! A component: `outlast-service NAME`, started by a manager (`outlast_glue_rt::System`).

use std::process::ExitCode;

use outlast_glue_rt::{run, Stop};
use outlast_services::stubs::event::Service;
use outlast_services::{event, lock, stubs, timer};

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let error = match name.as_str() {
        "event" => run(|| stubs::event::Server(event::Events::default())),
        // For tests that show what G0 is for: the same stubs without it.
        "event-without-g0" => run(|| without_g0::Server(WithoutG0(event::Events::default()))),
        "lock" => run(|| stubs::lock::Server(lock::Locks::default())),
        "timer" => run(|| stubs::timer::Server(timer::Timers::default())),
        _ => {
            eprintln!("outlast-service: expected the name of a service, event, lock or timer; found `{name}`");
            return ExitCode::from(2);
        }
    };
    eprintln!("outlast-service {name}: {error}");
    ExitCode::FAILURE
}

mod without_g0 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/event_without_g0.rs"));
}

#[derive(Clone)]
struct WithoutG0(event::Events);

impl without_g0::Service for WithoutG0 {
    fn event_split(&mut self, client: u32, parent: u64, group: i32, id: u64) -> Result<u64, Stop> {
        self.0.event_split(client, parent, group, id)
    }

    fn event_wait(&mut self, client: u32, event: u64) -> Result<i32, Stop> {
        self.0.event_wait(client, event)
    }

    fn event_trigger(&mut self, client: u32, event: u64) -> Result<i32, Stop> {
        self.0.event_trigger(client, event)
    }

    fn event_free(&mut self, client: u32, event: u64) -> Result<i32, Stop> {
        self.0.event_free(client, event)
    }
}
