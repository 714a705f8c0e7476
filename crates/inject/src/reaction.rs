//! What outlast did about a fault, from the program's log.

use outlast_supervisor::log::{Entry, Kind, FILE};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::SystemTime;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reaction {
    /// It was protected at all.
    pub protected: bool,
    /// From the fault to the first line about a death or a failure.
    pub detected_us: Option<f64>,
    /// Recoveries, of every rung.
    pub recoveries: u32,
    /// What the first of them took, as the log says.
    pub recovery_us: Option<f64>,
    /// Of those the ones that went back to an older generation.
    pub went_back: u32,
    /// It gave up, and nothing helped after that.
    pub gave_up: bool,
    /// Protection was given up, and why.
    pub suspended: Option<String>,
}

/// Reads what the log of a program says of the time since `from`.
pub fn read(state: &Path, name: &str, from: Option<SystemTime>) -> Reaction {
    let text = std::fs::read_to_string(state.join(name).join(FILE)).unwrap_or_default();
    of(text.lines().filter_map(|line| serde_json::from_str(line).ok()), from)
}

fn of(entries: impl Iterator<Item = Entry>, from: Option<SystemTime>) -> Reaction {
    let mut reaction = Reaction::default();
    for entry in entries {
        let since = |from| humantime::parse_rfc3339(&entry.time).ok()?.duration_since(from).ok();
        // What struck was noted just before it did, so that nothing of the fault is older.
        let is_later = from.is_some_and(|from| since(from).is_some());
        match entry.event {
            Kind::Injected => reaction.protected = true,
            _ if !is_later => (),
            Kind::Killed | Kind::OomKilled | Kind::Crashed | Kind::Rollback | Kind::EngineError | Kind::GaveUp => {
                let micros = from.and_then(since).map(|time| time.as_nanos() as f64 / 1e3);
                reaction.detected_us = reaction.detected_us.or(micros);
                reaction.gave_up |= entry.event == Kind::GaveUp;
                if entry.event == Kind::Rollback {
                    recovered(&mut reaction, entry.duration_us);
                }
            }
            Kind::Recovered | Kind::Resumed | Kind::WentBack => {
                recovered(&mut reaction, entry.duration_us);
                reaction.went_back += u32::from(entry.event == Kind::WentBack);
            }
            Kind::Suspended => reaction.suspended = entry.cause,
            _ => (),
        }
    }
    reaction
}

fn recovered(reaction: &mut Reaction, took: Option<f64>) {
    if reaction.recoveries == 0 {
        reaction.recovery_us = took;
    }
    reaction.recoveries += 1;
    // Where tries in place are used up a generation may still help.
    reaction.gave_up = false;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn who_gave_up_and_went_back_did_not_give_up() {
        let entries = [Kind::Rollback, Kind::GaveUp, Kind::WentBack].map(Entry::new);
        let reaction = of(entries.into_iter(), Some(SystemTime::UNIX_EPOCH));
        assert_eq!((reaction.gave_up, reaction.went_back, reaction.recoveries), (false, 1, 2));
    }

    #[test]
    fn what_was_before_the_fault_is_no_reaction_to_it() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let entries = [
            Entry::at(at(1), Kind::Injected),
            Entry::at(at(2), Kind::Killed),
            Entry::at(at(2), Kind::Recovered),
            Entry::at(at(5), Kind::Rollback).took(Duration::from_micros(90)),
            Entry::at(at(6), Kind::GaveUp),
        ];
        let reaction = of(entries.into_iter(), Some(at(4)));
        assert_eq!((reaction.protected, reaction.recoveries, reaction.gave_up), (true, 1, true));
        assert_eq!((reaction.detected_us, reaction.recovery_us), (Some(1e6), Some(90.0)));
    }
}
