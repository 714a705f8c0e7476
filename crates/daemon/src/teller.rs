//! Tells of what is starved, here and on other nodes, and of nodes that come and go; counts it, and has a person alerted.

use crate::tell::{tell, Event, NODE_RETURNED, NODE_VANISHED, PROCESSOR_STARVED, THREAD_STARVED};
use libc::pid_t;
use outlast_interfaces::schl::{Flagged, Running, Starved, Stays, Thread};
use outlast_supervisor::alert::alert;
use outlast_supervisor::say::{printable, say};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often what was told of, by name.
#[derive(Default, Serialize, Deserialize)]
pub struct Counts(pub BTreeMap<String, u64>);

impl Counts {
    /// As a daemon that runs, or ran last, has left them.
    pub fn read(path: &Path) -> Self {
        std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Nobody reads half of it; where there is no room it stays as it was.
    fn write(&self, path: &Path) -> Option<()> {
        replace(path, &serde_json::to_vec(self).ok()?)
    }
}

/// Writes a file that others read at any time. Other threads may write those beside it.
pub fn replace(path: &Path, bytes: &[u8]) -> Option<()> {
    let mut new = path.as_os_str().to_os_string();
    new.push(".new");
    std::fs::write(&new, bytes).ok()?;
    std::fs::rename(&new, path).ok()
}

/// So many threads that wait are named.
const NAMED: usize = 4;
/// No line is longer, in characters.
const LONGEST: usize = 2000;
/// Of so much that is starved on another node is told within [`WHILE`]: it may say what it likes, and a person is alerted of each.
const MOST_OF_NODE: u32 = 32;
const WHILE: Duration = Duration::from_secs(600);

/// For several threads.
pub struct Teller {
    /// The command that is run when something is told of; no words: none.
    alert: Vec<String>,
    /// Where it is counted what was told of.
    path: PathBuf,
    counts: Mutex<Counts>,
    /// Of how much was told of each node, since when.
    of_nodes: Mutex<BTreeMap<String, (u32, Instant)>>,
}

impl Teller {
    pub fn new(alert: Vec<String>, path: PathBuf) -> Self {
        let events = [PROCESSOR_STARVED, THREAD_STARVED, NODE_VANISHED, NODE_RETURNED];
        let counts = Counts(events.map(|event| (event.name().into(), 0)).into());
        counts.write(&path);
        Self { alert, path, counts: Mutex::new(counts), of_nodes: Mutex::default() }
    }

    /// Something is starved.
    pub fn starved(&self, Flagged { node, what }: &Flagged) {
        if node.as_ref().is_some_and(|node| !self.may_tell_of(node)) {
            return;
        }
        let is_here = node.is_none();
        let (event, line, mut fields) = match what {
            Starved::Processor { number, waiting, runs, why } => {
                let line = format!("processor {number} {}", in_words(*number, *waiting, *runs, *why, is_here));
                let thread = runs.map(|runs| ("OUTLAST_THREAD", runs.thread.to_string()));
                let fields = [("OUTLAST_PROCESSOR", number.to_string())].into_iter().chain(thread).collect();
                (PROCESSOR_STARVED, line, fields)
            }
            Starved::Thread { thread, waited } => {
                let Thread { program, process, thread, processor, .. } = thread;
                let seconds = waited.as_secs_f64();
                let line = format!(
                    "{program}: thread {thread} of process {process} could run, and has got no processor for {seconds:.1} s; it waits for processor {processor}"
                );
                let fields = vec![("OUTLAST_PID", process.to_string()), ("OUTLAST_THREAD", thread.to_string())];
                (THREAD_STARVED, line, fields)
            }
        };
        let line = match node {
            None => line,
            Some(node) => {
                fields.push(("OUTLAST_NODE", node.clone()));
                format!("node {node}: {line}")
            }
        };
        self.tell(&event, fields, line);
    }

    fn may_tell_of(&self, node: &str) -> bool {
        let mut of_nodes = self.of_nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, since) = of_nodes.entry(node.into()).or_insert_with(|| (0, Instant::now()));
        if since.elapsed() >= WHILE {
            (*count, *since) = (0, Instant::now());
        }
        *count = count.saturating_add(1);
        if *count == MOST_OF_NODE + 1 {
            say(format_args!("node {node}: more is starved there than is told of"));
        }
        *count <= MOST_OF_NODE
    }

    /// A node counts as gone.
    pub fn vanished(&self, node: &str, why: &str) {
        self.tell(&NODE_VANISHED, vec![("OUTLAST_NODE", node.into())], format!("node {node} has vanished: {why}"));
    }

    /// A node is spoken to.
    pub fn returned(&self, node: &str, after: Duration) {
        let line = format!("node {node} is there, after {:.1} s", after.as_secs_f64());
        self.tell(&NODE_RETURNED, vec![("OUTLAST_NODE", node.into())], line);
    }

    fn tell(&self, event: &Event, mut fields: Vec<(&'static str, String)>, line: String) {
        // Threads have the names that they have given themselves, and another node may say anything.
        let line = printable(&line.chars().take(LONGEST).collect::<String>());
        fields.push(("OUTLAST_CAUSE", line.clone()));
        let mut variables = vec![("EVENT", event.name().to_string())];
        variables.extend(fields.iter().map(|(name, value)| (name.trim_start_matches("OUTLAST_"), value.clone())));
        tell(event, fields, format_args!("{line}"));
        if let Err(e) = alert(&self.alert, &variables, 0) {
            say(format_args!("cannot begin the command of the alert: {e}"));
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.0.entry(event.name().into()).or_default() += 1;
        counts.write(&self.path);
    }
}

/// Names of processes and threads are known of this machine only.
fn in_words(number: u32, waiting: u32, runs: Option<Running>, why: Stays, is_here: bool) -> String {
    let who = runs.map_or("nothing".into(), |Running { thread, process, is_realtime, .. }| {
        let kind = if is_realtime { "real-time thread" } else { "thread" };
        let name = if is_here { format!(" ({})", name(process, thread)) } else { String::new() };
        format!("{kind} {thread}{name} of process {process}")
    });
    let what = match why {
        Stays::Computes { count, in_user_mode, check } => {
            let [count, in_user_mode, check] = [count, in_user_mode, check].map(|time| time.as_secs_f64());
            format!(
                "has computed for {count:.2} s, {in_user_mode:.2} s of it in user mode, where {check:.2} s are enough"
            )
        }
        Stays::Stands { since } => {
            let seconds = since.as_secs_f64();
            format!("stands still for {seconds:.1} s: halted, without interrupts, or not run by the hypervisor")
        }
    };
    let runs = runs.map_or(0, |runs| runs.thread);
    let names = if is_here { waiting_for(number, runs) } else { Vec::new() };
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    format!("does not switch: {who} {what}; waiting: {waiting}{names}")
}

fn name(process: pid_t, thread: pid_t) -> String {
    let name = read_to_string(format!("/proc/{process}/task/{thread}/comm")).unwrap_or_default();
    name.trim_end().into()
}

/// Some that could run on this processor, by name and number; who runs there is none of them.
fn waiting_for(processor: u32, runs: pid_t) -> Vec<String> {
    let numbers = |path: &str| {
        let entries = read_dir(path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse::<pid_t>().ok())
    };
    let threads = numbers("/proc").flat_map(|process| numbers(&format!("/proc/{process}/task")));
    let waits = |thread: &pid_t| {
        let stat = read_to_string(format!("/proc/{thread}/stat")).ok()?;
        let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
        let is = *thread != runs && fields.first() == Some(&"R") && fields.get(36)?.parse() == Ok(processor);
        is.then(|| format!("{} {thread}", name(*thread, *thread)))
    };
    threads.filter_map(|thread| waits(&thread)).take(NAMED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beside_each_other_are_replaced_by_several_threads_and_none_gets_what_is_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = folder.path().join(name);
            (0..3000).for_each(|_| {
                replace(&path, name.as_bytes()).unwrap();
                assert_eq!(read_to_string(&path).unwrap(), name);
            });
        };
        std::thread::scope(|scope| {
            ["daemon.json", "daemon.nodes"]
                .map(|name| scope.spawn(move || write(name)))
                .map(|thread| thread.join().unwrap())
        });
        assert_eq!(read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn another_node_has_not_more_told_than_somebody_can_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts");
        let teller = Teller::new(Vec::new(), path.clone());
        let flagged = |node: Option<&str>, number: u32| Flagged {
            node: node.map(String::from),
            what: Starved::Processor { number, waiting: 1, runs: None, why: Stays::Stands { since: Duration::MAX } },
        };
        let count = || Counts::read(&path).0["processor-starved"];
        (0..1000).for_each(|number| teller.starved(&flagged(Some("beta"), number)));
        assert_eq!(count(), u64::from(MOST_OF_NODE));
        (0..3).for_each(|number| teller.starved(&flagged(Some("gamma"), number)));
        teller.starved(&flagged(None, 1));
        assert_eq!(count(), u64::from(MOST_OF_NODE) + 4);
    }
}
