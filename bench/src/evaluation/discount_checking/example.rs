//! Results with figures that can be computed by hand, for the tests.

use super::results::*;
use crate::evaluation::report::Origin;
use crate::evaluation::section::Section;
use crate::evaluation::surroundings::Surroundings;
use crate::machine::Machine;

pub fn application() -> Application {
    let typed =
        |answers: [f64; 2], program_us, watchers_us| Typed { responses_us: answers.to_vec(), program_us, watchers_us };
    let played = Played {
        native: typed([100.0, 300.0], 200.0, 0.0),
        protected: typed([300.0, 500.0], 400.0, 100.0),
        commits: 4,
        log: Log { bytes: 16384, largest: 8192 },
        trapped: 1,
    };
    Application {
        name: "nvi".into(),
        delay_ms: 100.0,
        session: "two keys".into(),
        rounds: vec![played.clone(), played],
        obstacle: None,
        conditions: "as ever".into(),
    }
}

pub fn computation() -> Computation {
    let took = |elapsed_ms, processor_ms| Took { elapsed_ms, processor_ms };
    let at = |interval_ms, native, protected, commits, log| AtInterval { interval_ms, native, protected, commits, log };
    let log = Log { bytes: 81920, largest: 8192 };
    let first = at(50, took(1000.0, 1000.0), took(1100.0, 1080.0), 20, log);
    let swept = Swept { pairs: vec![first, at(1000, took(2000.0, 2000.0), took(2002.0, 2002.0), 0, Log::default())] };
    Computation {
        name: "cjpeg".into(),
        what: "compresses".into(),
        rounds: vec![swept],
        obstacle: None,
        conditions: "as ever".into(),
    }
}

pub fn results() -> Results {
    let surroundings = Surroundings {
        machine: "2 × x86, Linux 6.18".into(),
        began: "2026-01-01T00:00:00Z".into(),
        took: 10.0,
        load: [0.5, 1.25],
        steal: 2.5,
        waited: Some(3.0),
    };
    let points = [4096, 1 << 20].map(|bytes| Point { bytes, pairs: vec![[200.0, 2200.0]] });
    let sweep =
        Sweep { pattern: Pattern::Whole, points: points.to_vec(), obstacle: None, conditions: "as ever".into() };
    let machine = Machine {
        kernel: "6.18".into(),
        processor: "a processor".into(),
        processors: 2,
        memory_mib: 1024,
        load: 0.5,
        user: "root".into(),
        priority: 0,
    };
    Results {
        origin: Origin { outlast: "0.1.0".into(), machine, seed: 1, quick: false },
        applications: Section { surroundings: Some(surroundings.clone()), entries: vec![application()] },
        commits: Section { surroundings: Some(surroundings.clone()), entries: vec![sweep] },
        computations: Section { surroundings: Some(surroundings), entries: vec![computation()] },
    }
}
