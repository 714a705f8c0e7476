//! A component: `outlast-service NAME`, started by a manager (`outlast_glue_rt::System`).

use std::process::ExitCode;

use outlast_glue_rt::run;
use outlast_services::{lock, stubs};

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let error = match name.as_str() {
        "lock" => run(|| stubs::lock::Server(lock::Locks::default())),
        _ => {
            eprintln!("outlast-service: expected the name of a service: lock; found `{name}`");
            return ExitCode::from(2);
        }
    };
    eprintln!("outlast-service {name}: {error}");
    ExitCode::FAILURE
}
