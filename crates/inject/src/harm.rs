//! Faults for who runs and judges a process oneself: lists in the form of a campaign's, and one blow.

use crate::campaign::{Fault, Kind};
use crate::moment::hit_process;
use crate::ptrace::{read, registers};
use crate::{call_numbers, reading};
use fastrand::Rng;
use libc::pid_t;
use outlast_stacks::{At, Frame, Process};
use serde::Deserialize;
use std::time::{Duration, Instant};

/// For so long the place of a fault in memory is watched.
const WATCHED: Duration = Duration::from_secs(1);

/// The `[[fault]]`s of a campaign file, whatever else is in it.
#[derive(Debug, Deserialize)]
pub struct Faults {
    #[serde(rename = "fault")]
    all: Vec<Fault>,
}

/// What a fault did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Harm {
    pub kind: &'static str,
    /// Which register, which bit and so on.
    pub what: String,
    /// Whether it took effect, as far as that can be known.
    pub activated: Option<bool>,
    /// The functions that the thread was in that was struck, innermost first; empty: nobody looked, or it was no thread in particular.
    pub stack: Vec<String>,
}

impl Faults {
    /// # Errors
    /// It is no list of faults, or has one that cannot strike at a moment; why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let faults: Self = toml::from_str(text).map_err(|error| error.message().to_string())?;
        for fault in &faults.all {
            reading::check(fault)?;
            if fault.symbol.is_some() || fault.call.is_some() || fault.kind == Kind::Limit {
                return Err(format!(
                    "{} at a named point, or of a control group, is none at a moment",
                    fault.kind.name()
                ));
            }
        }
        match faults.all.iter().all(|fault| fault.weight == 0) {
            true => Err("no [[fault]] with a weight: nothing would be injected".into()),
            false => Ok(faults),
        }
    }

    /// Strikes a process with one of them, drawn by weight; the same for the same seed, as far as it does not depend on the moment. None:
    /// nobody was there to be struck.
    pub fn strike(&self, pid: pid_t, seed: u64) -> Option<Harm> {
        let mut rng = Rng::with_seed(seed);
        let whole: u64 = self.all.iter().map(|fault| u64::from(fault.weight)).sum();
        let mut at = rng.u64(0..whole);
        let fault = self.all.iter().find(|fault| {
            let found = at < u64::from(fault.weight);
            at = at.saturating_sub(u64::from(fault.weight));
            found
        })?;
        let kind = fault.kind.name();
        if fault.kind == Kind::Signal {
            let name = fault.signal.as_deref().unwrap_or("SIGSEGV");
            // SAFETY: plain call; the process was there a moment ago, and numbers are not used again so soon.
            let sent = unsafe { libc::kill(pid, call_numbers::signal(name)?) };
            return (sent == 0).then(|| Harm { kind, what: name.into(), activated: Some(true), stack: Vec::new() });
        }
        let mut stack = Vec::new();
        let look = |tid| stack = functions(pid, tid);
        let (struck, _) = hit_process(pid, fault, &mut rng, Instant::now() + WATCHED, look)?;
        struck.map(|struck| Harm { kind, what: struck.what, activated: struck.activated, stack })
    }
}

/// Those that a stopped thread is in.
fn functions(pid: pid_t, tid: pid_t) -> Vec<String> {
    let Ok(registers) = registers(tid) else { return Vec::new() };
    let at = At { ip: registers.rip, sp: registers.rsp, bp: registers.rbp };
    let word = |address| {
        let mut bytes = [0; 8];
        read(pid, address, &mut bytes).ok().map(|()| u64::from_le_bytes(bytes))
    };
    let stack = Process::look(pid).stack(at, word);
    let named = |frame: &Frame| frame.function.as_ref().map(|(name, at)| format!("{name}+{at:#x}"));
    stack.frames.iter().map(|frame| named(frame).unwrap_or_else(|| frame.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_out_of_a_campaign_and_what_cannot_strike_at_a_moment_is_refused() {
        let campaign = "name = 'x'\ncount = 3\n[target]\ncommand = ['true']\n";
        let parse = |faults: &str| Faults::parse(&format!("{campaign}{faults}"));
        let good = "[[fault]]\nkind = 'register'\neach = true\nregisters = ['rax', 'rsp']\n";
        assert_eq!(parse(good).expect("a list").all.len(), 1);
        for bad in [
            "",
            "[[fault]]\nkind = 'loop'\nsymbol = 'main'\n",
            "[[fault]]\nkind = 'limit'\n",
            "[[fault]]\nkind = 'register'\neach = true\n",
            "[[fault]]\nkind = 'loop'\nweight = 0\n",
            "[[fault]]\nkind = 'lop'\n",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    /// Of a thread that computes without end every fault that ends it does so by a signal.
    #[test]
    fn bits_of_all_registers_end_a_process_that_counts() {
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell");
        let faults = Faults::parse("[[fault]]\nkind = 'register'\neach = true\nregisters = ['rip', 'rsp', 'rax']\n");
        let faults = faults.expect("a list");
        let mut struck = Vec::new();
        for seed in 0..200 {
            struck.extend(faults.strike(child.id() as pid_t, seed).map(|harm| {
                assert!(!harm.stack.is_empty());
                harm.what
            }));
            std::thread::sleep(Duration::from_millis(5));
            if child.try_wait().expect("a child").is_some() {
                break;
            }
        }
        let ended = child.try_wait().expect("a child");
        let _ = child.kill();
        let _ = child.wait();
        assert!(struck.iter().all(|what| what.matches(" bit ").count() == 3), "{struck:?}");
        assert!(ended.is_some_and(|status| !status.success()), "{struck:?}");
    }
}
