//! What is expected of a run: what unharmed runs by themselves show, or what a check command says.

use crate::campaign::Setting;
use crate::error::Error;
use crate::launch::{Manner, Run, Stage, CLIENT_STATUS};
use crate::room::{House, Room};
use crate::view::{add_files, ending, View};
use crate::waiting::{self, for_end, Ending};
use outlast_supervisor::end::End;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How long an unharmed run takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    pub elapsed: Duration,
    /// Processor time of the target's process.
    pub processor: Duration,
}

pub struct Oracle {
    expected: View,
    /// Parts that unharmed runs do not agree about.
    pub varying: BTreeSet<String>,
}

impl Oracle {
    /// Learns from unharmed runs by themselves.
    pub fn learn(stage: &Stage<'_>, house: &House, runs: u32, timeout: Duration) -> Result<Self, Error> {
        let native = Setting { name: "unharmed".into(), protected: false, options: Vec::new() };
        let (expected, _) = unharmed(stage, house, &native, "unharmed-0", timeout)?;
        let mut varying = BTreeSet::new();
        for number in 1..runs {
            let (view, _) = unharmed(stage, house, &native, &format!("unharmed-{number}"), timeout)?;
            if view.end != expected.end {
                return Err(Error::Unharmed("it ends now in one way, now in another".into()));
            }
            let names: BTreeSet<&String> = view.parts.keys().chain(expected.parts.keys()).collect();
            let other = names.into_iter().filter(|name| view.parts.get(*name) != expected.parts.get(*name));
            varying.extend(other.cloned());
        }
        Ok(Self { expected, varying })
    }

    pub fn expected_end(&self) -> Option<End> {
        self.expected.end
    }

    /// Whether the client ended otherwise than it should.
    pub fn client_failed(&self, view: &View) -> bool {
        let status = |view: &View| view.parts.get(CLIENT_STATUS).cloned();
        status(view) != status(&self.expected)
    }

    /// The same of an end that is known before the run is over.
    pub fn is_client_failure(&self, end: End) -> bool {
        self.expected.parts.get(CLIENT_STATUS).is_some_and(|status| *status != ending(Some(end)).into_bytes())
    }

    /// What is wrong with a run; none if nobody can tell it from an unharmed one.
    pub fn objection(&self, stage: &Stage<'_>, room: &Room, view: &View) -> Option<String> {
        if view.end != self.expected.end {
            return Some(format!("{}, expected {}", ending(view.end), ending(self.expected.end)));
        }
        match &stage.target.check {
            Some(check) => refused(stage, room, check),
            None => view.differs_from(&self.expected, &self.varying),
        }
    }
}

/// What a check command has against what a run left.
fn refused(stage: &Stage<'_>, room: &Room, check: &[String]) -> Option<String> {
    let status = stage.command(check, room).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("check: {status}")),
        Err(e) => Some(format!("check cannot be run: {e}")),
    }
}

/// A run without a fault, and how long it took.
pub fn unharmed(
    stage: &Stage<'_>,
    house: &House,
    setting: &Setting,
    name: &str,
    timeout: Duration,
) -> Result<(View, Pace), Error> {
    let room = house.room()?;
    let mut run = stage.start(setting, &room, name, Manner::default())?;
    let mut processor = Duration::ZERO;
    let deadline = Instant::now() + timeout;
    let ended = for_end(
        &mut run,
        deadline,
        |_| false,
        |run| {
            if let Some(time) = run.program().and_then(waiting::processor_time) {
                processor = processor.max(time);
            }
        },
    );
    let elapsed = run.started.elapsed();
    let view = view(run, &room)?;
    let refused = stage.target.check.as_ref().and_then(|check| refused(stage, &room, check));
    match ended {
        Ending::Ended if refused.is_some() => Err(Error::Unharmed(refused.unwrap_or_default())),
        Ending::Ended => Ok((view, Pace { elapsed, processor })),
        Ending::Interrupted => Err(Error::Interrupted),
        Ending::TooLate | Ending::Deserted | Ending::Flood => {
            Err(Error::Unharmed(format!("{} does not end within {timeout:?}", setting.name)))
        }
    }
}

/// What can be seen of a run that is over.
pub fn view(run: Run, room: &Room) -> Result<View, Error> {
    let (end, streams) = run.finish();
    let mut parts: BTreeMap<String, Vec<u8>> =
        streams.into_iter().map(|(name, bytes)| (name.to_string(), bytes)).collect();
    add_files(&mut parts, &room.work(), "")?;
    Ok(View { end, parts })
}
