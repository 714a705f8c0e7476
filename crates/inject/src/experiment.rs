//! One experiment: a run that is harmed once, and what became of it.

use crate::campaign::{Campaign, Kind, Setting};
use crate::draw::{Planned, Point};
use crate::error::Error;
use crate::group::Group;
use crate::judge::{outcome, Facts, Outcome};
use crate::launch::{Manner, Stage};
use crate::moment;
use crate::oracle::{view, Oracle, Pace};
use crate::reaction::{self, Reaction};
use crate::record::Experiment;
use crate::room::House;
use crate::strike::Struck;
use crate::traced::{self, Attempt};
use crate::view::ending;
use crate::waiting::{for_end, Ending};
use std::time::Instant;

/// How often a run is begun anew that was too far already when it could be traced. Whoever traces it looks out for it, and on a
/// busy machine comes too late about every other time.
const ATTEMPTS: u32 = 50;

/// What all experiments of a campaign need.
pub struct Laboratory<'a> {
    pub campaign: &'a Campaign,
    pub stage: &'a Stage<'a>,
    pub house: &'a House,
    pub oracle: &'a Oracle,
}

impl Laboratory<'_> {
    /// Harms one run in this setting.
    pub fn perform(&self, planned: &Planned<'_>, setting: &Setting, pace: Pace) -> Result<Experiment, Error> {
        let mut last = String::new();
        for attempt in 1..=ATTEMPTS {
            let name = format!("{}-{}-{attempt}", setting.name, planned.number);
            match self.attempt(planned, setting, pace, &name)? {
                Ok(experiment) => return Ok(experiment),
                Err(why) => last = why,
            }
        }
        let why = format!("the target could not be traced from its start in {ATTEMPTS} runs; in the last, {last}");
        Ok(Experiment { objection: Some(why), ..blank(planned, setting, Outcome::Impossible) })
    }

    /// Or why the target could not be traced from its start.
    fn attempt(
        &self,
        planned: &Planned<'_>,
        setting: &Setting,
        pace: Pace,
        name: &str,
    ) -> Result<Result<Experiment, String>, Error> {
        let room = self.house.room()?;
        let group = match planned.fault.kind {
            Kind::Limit => match Group::make(&format!("outlast-inject.{}.{name}", std::process::id())) {
                None => {
                    let why = "no memory control group can be made here".to_string();
                    return Ok(Ok(Experiment { objection: Some(why), ..blank(planned, setting, Outcome::Impossible) }));
                }
                group => group,
            },
            _ => None,
        };
        let from_start = !matches!(planned.point, Point::Share(..));
        let manner = Manner { traced: from_start, every_call: planned.fault.kind.is_of_calls(), group: group.as_ref() };
        let mut run = self.stage.start(setting, &room, name, manner)?;
        let deadline = Instant::now() + self.campaign.timeout;
        let struck: Option<Struck> = match planned.point {
            Point::Share(clock, share) => moment::wait(&mut run, clock, share, pace, deadline)
                .then(|| moment::hit(&mut run, planned, group.as_ref(), deadline))
                .flatten(),
            _ => match traced::hit(&mut run, planned, deadline) {
                Ok(Attempt::Struck(struck)) => Some(struck),
                Ok(Attempt::NotReached) => None,
                missed => {
                    run.kill();
                    return Ok(Err(missed.map_or_else(|e| e.to_string(), |_| "it was too far already".into())));
                }
            },
        };
        // A run that was stopped for long is not the slower for it.
        let deadline = deadline.max(Instant::now() + self.campaign.timeout / 4);
        let ending_of_run = for_end(&mut run, deadline, |end| self.oracle.is_client_failure(end), |_| ());
        if ending_of_run == Ending::Interrupted {
            run.kill();
            return Err(Error::Interrupted);
        }
        let elapsed_ms = run.started.elapsed().as_secs_f64() * 1e3;
        let to_end_ms = struck.as_ref().and_then(|s| s.at.elapsed().ok()).map(|time| time.as_secs_f64() * 1e3);
        let outlast = setting.protected.then(|| reaction::read(&self.stage.state, name, struck.as_ref().map(|s| s.at)));
        let protected = run.is_protected();
        let mut view = view(run, &room)?;
        if protected {
            view.without_what_outlast_says();
        }
        let end = if ending_of_run == Ending::Ended { view.end } else { None };
        let objection = match ending_of_run {
            Ending::Ended => self.oracle.objection(self.stage, &room, &view),
            Ending::Flood => Some("it prints without end".into()),
            Ending::Deserted => Some("its client failed, and it went on".into()),
            _ => Some(format!("no end within {:?}", self.campaign.timeout)),
        };
        let detected = outlast.as_ref().is_some_and(|r: &Reaction| r.detected_us.is_some());
        let facts = Facts {
            ending: ending_of_run,
            end,
            expected: self.oracle.expected_end(),
            same: objection.is_none(),
            struck: struck.is_some(),
            activated: struck.as_ref().and_then(|s| s.activated),
            client_failed: self.oracle.client_failed(&view),
            detected,
            went_back: outlast.as_ref().is_some_and(|r| r.went_back > 0),
        };
        Ok(Ok(Experiment {
            struck: struck.is_some(),
            place: struck.as_ref().map(|s| s.place),
            activated: facts.activated,
            what: struck.map(|s| s.what),
            end: ending(end),
            objection,
            outlast,
            to_end_ms,
            elapsed_ms,
            ..blank(planned, setting, outcome(&facts))
        }))
    }
}

fn blank(planned: &Planned<'_>, setting: &Setting, outcome: Outcome) -> Experiment {
    Experiment {
        number: planned.number,
        setting: setting.name.clone(),
        kind: planned.fault.kind,
        point: planned.point.to_string(),
        struck: false,
        place: None,
        what: None,
        activated: None,
        outcome,
        end: String::new(),
        objection: None,
        outlast: None,
        to_end_ms: None,
        elapsed_ms: 0.0,
    }
}
