//! `outlast metrics`: figures of all programs for Prometheus.

use crate::{daemon, state};
use clap::Args;
use outlast_daemon::Counts as Told;
use outlast_supervisor::log::{Entry, FILE};
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::status::{all, Status};
use outlast_supervisor::Error;
use prometheus_client::encoding::{text::encode, EncodeLabelSet};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use tempfile::NamedTempFile;

/// Print the figures of all programs in the text format of Prometheus
///
/// With --output a timer of cron's or systemd's can have them collected by the node exporter, from its folder of text files. Figures of a program that
/// has ended stay until `outlast rm`.
#[derive(Args)]
pub struct Metrics {
    /// Write them to this file, replaced as a whole, in place of standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Where the daemon counts what it tells of
    #[arg(long, hide = true, value_name = "FILE", default_value = daemon::COUNTS)]
    daemon: PathBuf,
}

/// Whose figure it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
struct Of {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
struct Event {
    name: String,
    event: String,
}

/// Of the machine, as the daemon has told it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
struct OfMachine {
    event: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
struct NotPreserved {
    name: String,
    what: String,
}

impl Metrics {
    pub fn execute(self) -> Result<i32, Error> {
        let state = state::open()?;
        let programs = all(&state)?;
        let text = encoded(&programs, |program| events(&state, program), &Told::read(&self.daemon));
        match self.output {
            None => crate::output::text(&text),
            Some(path) => replace(&path, &text).map_err(Error::Output).map(|()| 0),
        }
    }
}

/// Nobody reads half of it.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    // Who collects them is another user, as a rule, and there is no secret in them.
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(readable)?;
    file.persist(path).map(drop).map_err(|e| e.error)
}

/// How often each event is in a program's log, by the names that `outlast log --json` has for them.
fn events(state: &StateFolder, program: &Status) -> BTreeMap<String, u64> {
    let folder = state.program(&program.name);
    let text =
        folder.ok().and_then(|folder| std::fs::read_to_string(folder.path().join(FILE)).ok()).unwrap_or_default();
    let mut counts = BTreeMap::new();
    for entry in text.lines().filter_map(|line| serde_json::from_str::<Entry>(line).ok()) {
        if let Ok(serde_json::Value::String(event)) = serde_json::to_value(entry.event) {
            *counts.entry(event).or_default() += 1;
        }
    }
    counts
}

/// Name, help, and what it is of a program.
type Counter = (&'static str, &'static str, fn(&Status) -> u64);

fn encoded(programs: &[Status], events: impl Fn(&Status) -> BTreeMap<String, u64>, told: &Told) -> String {
    let mut registry = Registry::with_prefix("outlast");
    let of = |program: &Status| Of { name: program.name.clone() };
    let gauge = |value: &dyn Fn(&Status) -> Option<f64>| {
        let family = Family::<Of, Gauge<f64, AtomicU64>>::default();
        for (program, value) in programs.iter().filter_map(|program| Some((program, value(program)?))) {
            family.get_or_create(&of(program)).set(value);
        }
        family
    };
    let protected = gauge(&|program| Some(if program.protected { 1.0 } else { 0.0 }));
    registry.register("protected", "1 while the program is protected", protected);
    let age = gauge(&|program| program.last_commit_age_us.map(|us| us / 1e6));
    registry.register_with_unit("last_commit_age", "Since the last commit", Unit::Seconds, age);
    let parking = gauge(&|program| program.parking_us.map(|us| us / 1e6));
    registry.register_with_unit(
        "parking",
        "What a commit waited in the mean until all threads stood still",
        Unit::Seconds,
        parking,
    );
    let median = gauge(&|program| program.commit_us.map(|us| us.median / 1e6));
    registry.register_with_unit("commit_median", "Half of the commits took no longer", Unit::Seconds, median);
    let p99 = gauge(&|program| program.commit_us.map(|us| us.p99 / 1e6));
    registry.register_with_unit("commit_p99", "99 of 100 commits took no longer", Unit::Seconds, p99);
    let store = gauge(&|program| Some(program.store_bytes as f64));
    registry.register_with_unit("store", "What the store takes", Unit::Bytes, store);
    let pages = gauge(&|program| Some(program.dirty_pages as f64));
    registry.register("last_commit_pages", "Pages in the last commit", pages);
    let counters: [Counter; 4] = [
        ("commits", "Commits.", |program| program.commits),
        ("recoveries", "Recoveries.", |program| program.recoveries),
        ("rollbacks", "Fatal signals met in place since the program was executed.", |program| program.rollbacks),
        ("store_written_bytes", "What commits have written since the program was executed.", |program| {
            program.log_bytes
        }),
    ];
    for (name, help, value) in counters {
        let counts = programs.iter().map(|program| (of(program), ConstCounter::new(value(program))));
        registry.register_collector(Box::new(Counts { name, help, counts: counts.collect() }));
    }
    let counts = programs.iter().flat_map(|program| {
        let name = program.name.clone();
        let event = move |(event, count)| (Event { name: name.clone(), event }, ConstCounter::new(count));
        events(program).into_iter().map(event)
    });
    registry.register_collector(Box::new(Counts {
        name: "events",
        help: "Lines of the log, by what happened.",
        counts: counts.collect(),
    }));
    let told = told.0.iter().map(|(event, count)| (OfMachine { event: event.clone() }, ConstCounter::new(*count)));
    registry.register_collector(Box::new(Counts {
        name: "machine_events",
        help: "What the daemon has told of the machine since it began.",
        counts: told.collect(),
    }));
    let lost = Family::<NotPreserved, Gauge>::default();
    for (program, what) in
        programs.iter().flat_map(|program| program.degradations.iter().map(move |what| (program, what)))
    {
        lost.get_or_create(&NotPreserved { name: program.name.clone(), what: (*what).into() }).set(1);
    }
    registry.register("not_preserved", "1 for what cannot be preserved of the program", lost);
    let mut text = String::new();
    // A String takes everything.
    let _ = encode(&mut text, &registry);
    text
}

mod counts {
    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
    use prometheus_client::metrics::counter::ConstCounter;
    use prometheus_client::metrics::MetricType;
    use std::fmt;

    /// Counts that were taken elsewhere.
    #[derive(Debug)]
    pub struct Counts<L> {
        pub name: &'static str,
        pub help: &'static str,
        pub counts: Vec<(L, ConstCounter<u64>)>,
    }

    impl<L: EncodeLabelSet + fmt::Debug + Send + Sync + 'static> Collector for Counts<L> {
        fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
            let mut metric = encoder.encode_descriptor(self.name, self.help, None, MetricType::Counter)?;
            self.counts.iter().try_for_each(|(labels, count)| count.encode(metric.encode_family(labels)?))
        }
    }
}
use counts::Counts;
