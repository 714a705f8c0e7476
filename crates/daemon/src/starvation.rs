//! Watches the scheduler, in a thread of its own, and tells of processors that do not switch and of protected programs that do not run.

use crate::execs::Error;
use crate::tell::{tell, Event, PROCESSOR_STARVED, THREAD_STARVED};
use libc::pid_t;
use outlast_core::Manifest;
use outlast_interfaces::oshang::Settings;
use outlast_interfaces::schl::{Running, Starved, Stays, Thread};
use outlast_pins::Machine;
use outlast_supervisor::alert::alert;
use outlast_supervisor::say::say;
use rustix::process::{setrlimit, Resource, Rlimit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

/// What the person asked for.
pub struct Watch {
    pub settings: Settings,
    /// The modules that protect the machine.
    pub modules: Vec<Manifest>,
    /// The command that is run when something is told of; no words: none.
    pub alert: Vec<String>,
    /// Where it is counted what was told of.
    pub counts: PathBuf,
}

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
        let new = path.with_extension("new");
        std::fs::write(&new, serde_json::to_vec(self).ok()?).ok()?;
        std::fs::rename(&new, path).ok()
    }
}

/// More processor time without a wait is a fault of this thread: it would be what keeps others from running.
const PATIENCE: Duration = Duration::from_secs(2);
/// So many threads that wait are named.
const NAMED: usize = 4;

impl Watch {
    /// For ever. `beats` goes on as long as this does.
    ///
    /// # Errors
    /// There is no module that watches.
    pub fn watch(self, beats: &Arc<AtomicU64>) -> Result<(), Error> {
        take_precedence();
        let machine = Machine::new(&self.settings, &self.modules);
        let mut machine = machine.map_err(|failure| Error::NoModule(failure.to_string()))?;
        let mut counts = Counts([PROCESSOR_STARVED, THREAD_STARVED].map(|event| (event.name().into(), 0)).into());
        counts.write(&self.counts);
        let what = "oshang: watches processors and protected programs";
        match machine.lacks() {
            None => say(format_args!("{what}")),
            Some(why) => say(format_args!("oshang: watches protected programs, not processors: {why}")),
        }
        loop {
            let starved = machine.look();
            for line in machine.failures() {
                say(format_args!("a module failed: {line}"));
            }
            for starved in starved {
                self.tell(&starved);
                *counts.0.entry(event(&starved).name().into()).or_default() += 1;
                counts.write(&self.counts);
            }
            beats.fetch_add(1, Relaxed);
            // One that failed too often wants nothing any more.
            std::thread::sleep(machine.every().unwrap_or(PATIENCE));
        }
    }

    fn tell(&self, starved: &Starved) {
        let (line, mut fields) = match starved {
            Starved::Processor { number, waiting, runs, why } => {
                let line = format!("processor {number} {}", in_words(*number, *waiting, *runs, *why));
                let thread = runs.map(|runs| ("OUTLAST_THREAD", runs.thread.to_string()));
                (line, [("OUTLAST_PROCESSOR", number.to_string())].into_iter().chain(thread).collect())
            }
            Starved::Thread { thread, waited } => {
                let Thread { program, process, thread, processor, .. } = thread;
                let seconds = waited.as_secs_f64();
                let line = format!(
                    "{program}: thread {thread} of process {process} could run, and has got no processor for {seconds:.1} s; it waits for processor {processor}"
                );
                (line, vec![("OUTLAST_PID", process.to_string()), ("OUTLAST_THREAD", thread.to_string())])
            }
        };
        fields.push(("OUTLAST_CAUSE", line.clone()));
        let event = event(starved);
        let mut variables = vec![("EVENT", event.name().to_string())];
        variables.extend(fields.iter().map(|(name, value)| (name.trim_start_matches("OUTLAST_"), value.clone())));
        tell(&event, fields, format_args!("{line}"));
        if let Err(e) = alert(&self.alert, &variables, 0) {
            say(format_args!("oshang: cannot begin the command of the alert: {e}"));
        }
    }
}

fn event(starved: &Starved) -> Event {
    match starved {
        Starved::Processor { .. } => PROCESSOR_STARVED,
        Starved::Thread { .. } => THREAD_STARVED,
    }
}

fn in_words(number: u32, waiting: u32, runs: Option<Running>, why: Stays) -> String {
    let who = runs.map_or("nothing".into(), |Running { thread, process, is_realtime, .. }| {
        let kind = if is_realtime { "real-time thread" } else { "thread" };
        format!("{kind} {thread} ({}) of process {process}", name(process, thread))
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
    let names = waiting_for(number, runs.map_or(0, |runs| runs.thread));
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

/// Runs before everything that it is to tell of; where that is not allowed it may be kept from telling.
fn take_precedence() {
    let most = PATIENCE.as_micros() as u64;
    // Before anything else: nothing ends a real-time thread that does not stop.
    if setrlimit(Resource::Rttime, Rlimit { current: Some(most), maximum: Some(most) }).is_err() {
        return;
    }
    // What it begins has no precedence.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: plain system calls on a structure that is ours.
    unsafe {
        let parameters = libc::sched_param { sched_priority: libc::sched_get_priority_max(libc::SCHED_FIFO) };
        libc::sched_setscheduler(0, policy, &parameters);
    }
}
