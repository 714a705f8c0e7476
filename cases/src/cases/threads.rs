//! Programs with several threads, whose lines come in one order all the same.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

const PYTHON: &str = "/usr/bin/python3";
const SBCL: &str = "/usr/bin/sbcl";
/// Of Boehm's collector.
const COLLECTOR: &str = "/usr/include/gc.h";

pub const CASES: &[Case] = &[
    Case::new("threads", |_| Ok(Program::new(&[&program("threads"), "60", "8"])), |_| Drive::Pipes(Input::none())),
    Case::new(
        "threads_static",
        |_| Ok(Program::new(&[&program("threads-static"), "60", "3"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new(
        "thread_signals",
        |_| Ok(Program::new(&[&program("thread_signals"), "500"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new(
        "thread_connect",
        |_| Ok(Program::new(&[&program("thread_connect"), "60"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new("collected", |_| Ok(Program::new(&[&program("collected"), "120"])), |_| Drive::Pipes(Input::none()))
        .needs(&[COLLECTOR]),
    // It opens a file of its process in /proc, which only root's has by the same number after a recovery.
    Case::new(
        "collected_in_increments",
        |_| Ok(Program::new(&[&program("collected"), "60", "incremental"])),
        |_| Drive::Pipes(Input::none()),
    )
    .needs(&[COLLECTOR])
    .root_only(),
    Case::new(
        "critical",
        |_| Ok(Program::new(&[&program("critical"), "20000", "30"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new("printers", |_| Ok(Program::new(&[&program("printers"), "100"])), |_| Drive::Pipes(Input::none())),
    Case::new("printers_each", |_| Ok(Program::new(&[&program("printers"), "100"])), |_| Drive::Pipes(Input::none()))
        .with_options(&["--commit", "each"]),
    Case::new("short_reads", |_| Ok(Program::new(&[&program("short_reads"), "6000"])), |_| Drive::Pipes(Input::none())),
    Case::new("mutexes", |_| Ok(Program::new(&[&program("mutexes"), "30", "4"])), |_| Drive::Pipes(Input::none())),
    Case::new(
        "sleepers",
        |_| Ok(Program::new(&[&program("sleepers"), "300", "60", "1500"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new("attributes", |_| Ok(Program::new(&[&program("attributes"), "400"])), |_| Drive::Pipes(Input::none())),
    Case::new("births", |_| Ok(Program::new(&[&program("births"), "1000"])), |_| Drive::Pipes(Input::none())),
    Case::new("openmp", |_| Ok(Program::new(&[&program("openmp"), "60"])), |_| Drive::Pipes(Input::none())),
    Case::new("pool", |_| Ok(Program::new(&[&program("pool"), "150"])), |_| Drive::Pipes(Input::none())),
    Case::new(
        "sbcl",
        |_| Ok(Program::new(&[SBCL, "--script", &program("garbage.lisp")])),
        |_| Drive::Pipes(Input::none()),
    )
    .needs(&[SBCL])
    .pace(crate::case::SPREAD),
    Case::new(
        "python_threads",
        |_| Ok(Program::new(&[PYTHON, &program("threads.py"), "400"])),
        |_| Drive::Pipes(Input::none()),
    )
    .needs(&[PYTHON])
    .pace(crate::case::SPREAD),
];
