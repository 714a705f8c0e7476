//! All measurements: the table of promises, one file for each kind.

mod attach;
mod calls;
mod commit;
mod computation;
mod durable;
mod generations;
mod hang;
mod interactive;
mod memory;
mod modules;
mod nodes;
pub mod oshang;
mod plugins;
mod postgres;
mod print;
mod redis;
mod respawn;
mod rollback;
mod sections;
mod servers;
mod startup;
mod threads;
mod trees;

use crate::measurement::Measurement;
use attach::Attach;
use calls::Calls;
use commit::{Commit, Means};
use computation::Computation;
use durable::Durable;
use generations::Generations;
use hang::Hang;
use interactive::Interactive;
use memory::Memory;
use modules::Modules;
use nodes::Nodes;
use oshang::OsHang;
use plugins::Plugins;
use postgres::Postgres;
use print::Print;
use redis::Redis;
use respawn::Respawn;
use rollback::Rollback;
use sections::Sections;
use servers::Servers;
use startup::Startup;
use threads::Threads;
use trees::Trees;

/// Everything that is promised, in the order of SPECIFICATION.md.
pub fn all() -> Vec<Box<dyn Measurement>> {
    vec![
        Box::new(Commit::hot(10, Means::Bpf)),
        Box::new(Commit::hot(1024, Means::Bpf)),
        Box::new(Commit::hot(10, Means::NoBpf)),
        Box::new(Commit::hot(1024, Means::NoBpf)),
        Box::new(Commit::cold(Means::Bpf)),
        Box::new(Commit::cold(Means::NoBpf)),
        Box::new(Commit::cold_hundred()),
        Box::new(Durable),
        Box::new(Print),
        Box::new(Calls),
        Box::new(Threads),
        Box::new(Redis),
        Box::new(Servers::nginx()),
        Box::new(Servers::apache()),
        Box::new(Postgres),
        Box::new(Trees),
        Box::new(Rollback),
        Box::new(Modules),
        Box::new(Plugins),
        Box::new(Nodes),
        Box::new(Sections),
        Box::new(Respawn { megabytes: 10, commits: 0, limit: 4.0 }),
        Box::new(Respawn { megabytes: 1024, commits: 0, limit: 12.0 }),
        Box::new(Respawn { megabytes: 10, commits: 10_000, limit: 4.0 }),
        Box::new(Respawn { megabytes: 1024, commits: 10_000, limit: 12.0 }),
        Box::new(Attach),
        Box::new(Computation::Gzip),
        Box::new(Computation::Python),
        Box::new(Computation::OpenMp),
        Box::new(Interactive::nvi()),
        Box::new(Interactive::sc()),
        Box::new(Interactive::game()),
        Box::new(Startup::Python),
        Box::new(Startup::Java),
        Box::new(Generations),
        Box::new(Hang),
        Box::new(OsHang),
        Box::new(Memory { megabytes: 10 }),
        Box::new(Memory { megabytes: 500 }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECIFICATION: &str = include_str!("../../../SPECIFICATION.md");

    /// Cells of the table's row that names a promise.
    fn row(id: &str) -> Option<Vec<&'static str>> {
        let name = format!("| `{id}` |");
        let line = SPECIFICATION.lines().find(|line| line.contains(&name))?;
        Some(line.trim_matches('|').split('|').map(str::trim).collect())
    }

    #[test]
    fn the_specification_promises_what_is_measured() {
        for promise in all().iter().flat_map(|m| m.promises()) {
            let row = row(&promise.id).unwrap_or_else(|| panic!("SPECIFICATION.md does not name {}", promise.id));
            let limit = format!("{} {}", promise.limit, promise.unit.symbol());
            assert_eq!(row[1].trim_start_matches('+'), limit, "{}", promise.id);
            assert_eq!(row[0], promise.what, "{}", promise.id);
        }
    }

    #[test]
    fn every_number_of_the_specification_is_measured() {
        let measured: Vec<String> = all().iter().flat_map(|m| m.promises()).map(|p| p.id).collect();
        let (_, numbers) = SPECIFICATION.split_once("## Numbers").expect("the numbers have a chapter");
        let named = numbers.lines().filter(|line| line.starts_with('|')).filter_map(|line| line.split('`').nth(1));
        for id in named {
            assert!(measured.iter().any(|known| known == id), "no measurement shows {id}");
        }
    }
}
