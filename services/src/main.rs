//! A component: `outlast-service NAME`, started by a manager (`outlast_glue_rt::System`). `outlast-service NAME OPERATION POINT FILE`
//! fails once, at that point of a call of that operation, when it can remove the file.

mod left;

use std::process::ExitCode;

use outlast_glue_rt::{run, Component};
use outlast_services::faulty::Faulty;
use outlast_services::stubs::untracked;
use outlast_services::{event, fs, journal, lock, memory, scheduler, stubs, timer};

use left::{memory_without_d0, scheduler_without_g1, without_g0, without_g1, Left};

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let error = match name.as_str() {
        "event" => serve(|| stubs::event::Server(event::Events::default())),
        // For tests that show what G0 and G1 are for: the same stubs without them.
        "event-without-g0" => serve(|| without_g0::Server(Left(event::Events::default()))),
        "fs-without-g1" => serve(|| without_g1::Server(Left(fs::Files::default()))),
        "fs" => serve(|| stubs::fs::Server(fs::Files::default())),
        "journal" => serve(|| stubs::journal::Server(journal::Journals::default())),
        "lock" => serve(|| stubs::lock::Server(lock::Locks::default())),
        "memory" => serve(|| stubs::memory::Server(memory::Pages::default())),
        "memory-without-d0" => serve(|| memory_without_d0::Server(Left(memory::Pages::default()))),
        "scheduler" => serve(|| stubs::scheduler::Server(scheduler::Threads::default())),
        "scheduler-without-g1" => serve(|| scheduler_without_g1::Server(Left(scheduler::Threads::default()))),
        "timer" => serve(|| stubs::timer::Server(timer::Timers::default())),
        // For comparison: no stub tracks or recovers anything.
        "event-untracked" => serve(|| untracked::event::Server(Left(event::Events::default()))),
        "fs-untracked" => serve(|| untracked::fs::Server(Left(fs::Files::default()))),
        "lock-untracked" => serve(|| untracked::lock::Server(Left(lock::Locks::default()))),
        "memory-untracked" => serve(|| untracked::memory::Server(Left(memory::Pages::default()))),
        "scheduler-untracked" => serve(|| untracked::scheduler::Server(Left(scheduler::Threads::default()))),
        "timer-untracked" => serve(|| untracked::timer::Server(Left(timer::Timers::default()))),
        _ => {
            eprintln!(
                "outlast-service: expected the name of a service, event, fs, journal, lock, memory, scheduler or timer; found `{name}`"
            );
            return ExitCode::from(2);
        }
    };
    eprintln!("outlast-service {name}: {error}");
    ExitCode::FAILURE
}

fn serve<C: Component + Clone>(boot: impl FnOnce() -> C) -> std::io::Error {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    run(|| Faulty::new(boot(), &arguments))
}
