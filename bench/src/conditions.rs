//! Under what circumstances a protected program ran: what the engine had, and what it could not preserve.

use crate::failure::{Failure, Outcome};
use outlast_image::control::{state, Control};
use outlast_image::fault_list::fault_source;
use outlast_image::inject::option;
use outlast_supervisor::session::Session;
use outlast_supervisor::{clock, reports};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Acquire};

/// Of a native run: nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    pub commits: u64,
    /// Whether BPF lists the addresses of page faults.
    pub fault_list: bool,
    pub ring: bool,
    pub write_protect_signal: bool,
    /// Call sites that were rewritten.
    pub rewritten: u64,
    /// Of the calls that the engine looked at, the share that came in by a signal.
    pub trapped: f64,
    /// Of several threads: microseconds of a stop of all others, threads knocked at and outputs made for others, both for each stop.
    pub parking: Option<[f64; 3]>,
    pub degradations: Vec<&'static str>,
}

impl Conditions {
    /// # Errors
    /// The program was not protected, so that its figures tell nothing.
    pub fn of(session: &Session) -> Outcome<Self> {
        let (control, args) = (session.control(), session.inject_args());
        let degradations = reports::degradations(control.degradations.load(Acquire));
        let commits = control.commits.load(Acquire);
        if commits == 0 || control.state.load(Acquire) == state::SUSPENDED {
            return Err(Failure::Unprotected(degradations.join(", ")));
        }
        let has = |bit| args.options & bit != 0;
        let calls = control.gate_calls.load(Acquire).max(1) as f64;
        Ok(Self {
            commits,
            fault_list: control.fault_source.load(Acquire) == fault_source::LIST,
            ring: !has(option::NO_RING) && !degradations.contains(&"no-io-uring"),
            write_protect_signal: has(option::TRACKER_MPROTECT),
            rewritten: control.rewritten_sites.load(Acquire),
            parking: parking(control),
            trapped: control.trapped_calls.load(Acquire) as f64 / calls,
            degradations,
        })
    }
}

fn parking(control: &Control) -> Option<[f64; 3]> {
    let stops = control.stops.load(Acquire);
    let each = |counter: &AtomicU64| counter.load(Acquire) as f64 / stops as f64;
    let micros = each(&control.stop_ticks) * clock::ns_per_tick() / 1e3;
    (stops > 0).then(|| [micros, each(&control.knocks), each(&control.joined)])
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |yes, word, otherwise| if yes { word } else { otherwise };
        write!(
            f,
            "{}, {}, {}, {} rewritten sites, {:.0} % of slow calls trapped",
            word(self.write_protect_signal, "mprotect", "async write protection"),
            word(self.fault_list, "BPF fault list", "no BPF"),
            word(self.ring, "io_uring", "no io_uring"),
            self.rewritten,
            self.trapped * 100.0
        )?;
        if let Some([micros, knocks, joined]) = self.parking {
            write!(f, ", parking {micros:.2} µs a commit, {knocks:.2} threads knocked at, {joined:.2} outputs joined")?;
        }
        let odd: Vec<_> = self.degradations.iter().filter(|d| **d != "pid-changed").copied().collect();
        if !odd.is_empty() {
            write!(f, ", not preserved: {}", odd.join(", "))?;
        }
        Ok(())
    }
}
