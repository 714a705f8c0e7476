//! Results for the tests.

use super::results::*;
use crate::evaluation::report::Origin;
use crate::evaluation::section::Section;
use crate::machine::Machine;

/// Figures that can be computed by hand.
pub fn example() -> Results {
    let all = |entries| Section { surroundings: None, entries };
    let work = |processor_ms| Work { elapsed_ms: 4000.0, processor_ms, units: 1.0 };
    let round = Round {
        native: work(4000.0),
        protected: work(4004.0),
        shadow: work(4040.0),
        dump: work(4080.0),
        commits: 2,
        log_bytes: 8192,
        shadow_ms: vec![1.5],
        dump_ms: vec![3.5],
        armed_ms: vec![0.01],
        present: vec![[1, 2, 3, 4, 5, 6]],
        written: vec![[0, 0, 10, 0, 0, 0]],
        a_page_us: 2.0,
    };
    let served = |requests| Served { requests, seconds: 2.0, mean_us: 100.0, ..Served::default() };
    let load = |modules: &str, requests| Load {
        modules: modules.into(),
        points: vec![Point { clients: 20, runs: vec![served(requests)] }],
        ..Load::default()
    };
    Results {
        origin: Origin {
            outlast: "0".into(),
            seed: 1,
            quick: false,
            machine: Machine {
                kernel: "6".into(),
                processor: "one".into(),
                processors: 2,
                memory_mib: 1024,
                load: 0.0,
                user: "root".into(),
                priority: 0,
            },
        },
        scale: 1.0,
        injected: all(vec![Injected {
            campaign: "web-hangs".into(),
            setting: "hang".into(),
            seed: 12,
            count: 10,
            struck: 9,
            correct: 8,
            hang: 1,
            detected: 8,
            recovered: 8,
            latencies_ms: vec![1000.0, 2000.0],
            ..Injected::default()
        }]),
        unharmed: Section {
            surroundings: None,
            entries: vec![Unharmed { seed: 1, sessions: 40, small: 50, ..Unharmed::default() }],
        },
        applications: Section {
            surroundings: None,
            entries: vec![Application {
                name: "gzip".into(),
                interval_ms: 2000,
                rounds: vec![round],
                ..Application::default()
            }],
        },
        approaches: Section {
            surroundings: None,
            entries: vec![Approach {
                name: "visible".into(),
                recoveries_ms: vec![1.0, 3.0],
                pairs_us: vec![[10.0, 15.0]],
                ..Approach::default()
            }],
        },
        loads: Section { surroundings: None, entries: vec![load("none", 200.0), load("visible", 100.0)] },
    }
}
