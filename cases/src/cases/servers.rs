//! TCP servers of languages with run-time systems of their own: goroutines, a virtual machine, tasks, event loops.

use super::tcp::clients;
use std::time::Duration;

use outlast_image::degradation::Degradation;

use crate::case::{Case, Program, Stage, SPREAD};
use crate::drive::{Drive, Input};
use crate::failure::Outcome;
use crate::launch::{program, programs};

pub const GO: &str = "/usr/bin/go";
const JAVA: &str = "/usr/bin/java";
const JAVAC: &str = "/usr/bin/javac";
pub const NODE: &str = "/usr/bin/node";
pub const PYTHON: &str = "/usr/bin/python3";

/// For virtual machines, so that their start is not all that is hit.
const SLOW: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(60));

pub const CASES: &[Case] = &[
    Case::new("go_server", |stage| server(stage, &[&program("server")]), clients).needs(&[GO]),
    Case::new("tokio_server", |stage| server(stage, &[&program("tokio_server")]), clients),
    Case::new("node_server", |stage| server(stage, &[NODE, &program("server.js")]), clients).needs(&[NODE]).pace(SLOW),
    Case::new(
        "node_timers",
        |_| Ok(Program::new(&[NODE, &program("timers.js"), "60"])),
        |_| Drive::Pipes(Input::none()),
    )
    .needs(&[NODE])
    .pace(SLOW),
    Case::new(
        "java_server",
        |stage| server(stage, &[JAVA, "-cp", &programs().display().to_string(), "Server"]),
        clients,
    )
    .needs(&[JAVA, JAVAC])
    .pace(SLOW)
    // Counters about itself for others to look at, in a file in /tmp.
    .may_report(&[Degradation::SharedMapping]),
    Case::new(
        "java_churn",
        |_| Ok(Program::new(&[JAVA, "-cp", &programs().display().to_string(), "Churn", "100"])),
        |_| Drive::Pipes(Input::none()),
    )
    .needs(&[JAVA, JAVAC])
    .pace(SLOW)
    .may_report(&[Degradation::SharedMapping]),
    Case::new(
        "java_zgc",
        |_| {
            Ok(Program::new(&[
                JAVA,
                "-cp",
                &programs().display().to_string(),
                "-XX:+UseZGC",
                "-XX:-UsePerfData",
                "-Xmx128m",
                "Churn",
                "100",
            ]))
        },
        |_| Drive::Pipes(Input::none()),
    )
    .needs(&[JAVA, JAVAC])
    .pace(SLOW),
    Case::new("python_asyncio", |stage| server(stage, &[PYTHON, &program("server.py")]), clients)
        .needs(&[PYTHON])
        .pace(SPREAD),
];

/// A server whose last argument is its port.
fn server(stage: &Stage, argv: &[&str]) -> Outcome<Program> {
    Ok(Program::new(&[argv, &[&stage.port.to_string()]].concat()))
}
