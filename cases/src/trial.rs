//! One test: a case under a setting and an attack, compared with its unharmed run.

use std::fmt;
use std::path::Path;

use outlast_image::event::phase;

use crate::attack::Attack;
use crate::case::{Case, Stage};
use crate::diagnosis;
use crate::drive::Seen;
use crate::event_log::EventLog;
use crate::failure::{Failure, Outcome};
use crate::hammer::{Blows, Hammer};
use crate::histogram::Histogram;
use crate::launch::{Harness, Launcher, Tools, NAME};
use crate::room::Room;
use crate::setting::Setting;
use crate::tree;
use crate::view::{files_in, Status, View};

/// What to do.
pub struct Trial<'a> {
    pub case: &'a Case,
    pub attack: Attack,
    pub setting: Setting,
    pub seed: u64,
    /// Blows that must have landed, over as many runs as that takes.
    pub blows: u32,
    /// A test hook that switches one mechanism off.
    pub mutant: Option<String>,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub runs: u32,
    /// Blows that hit a living process.
    pub landed: u32,
    /// Recoveries in the log.
    pub recovered: u32,
    /// Runs without io_uring whose view differed after a kill inside an operation: the documented window.
    pub window: u32,
    pub phases: Histogram,
}

/// Runs in a row that end without a single blow before the case is called too short.
const IDLE_RUNS: u32 = 20;

impl Trial<'_> {
    /// Runs the case unharmed, then harmed until enough blows have landed; `site` is the test's directory.
    pub fn run(&self, tools: &Tools, site: &Path) -> Outcome<Report> {
        let room = Room::new(site, self.setting.user)?;
        let launcher = Launcher { tools, room: &room, setting: self.setting };
        let mut random = fastrand::Rng::with_seed(self.seed);

        diagnosis::note("run", "unharmed");
        let unharmed = self.view(&launcher, &Harness::Native, random.u64(..), None)?;
        let mut report = Report::default();
        let mut idle = 0;
        loop {
            report.runs += 1;
            diagnosis::note("run", format!("{} ({} blows so far)", report.runs, report.landed));
            room.clear()?;
            let landed = self.harmed(&launcher, &unharmed, random.u64(..), &mut report)?;
            report.landed += landed;
            if report.landed >= self.blows {
                return Ok(report);
            }
            idle = if landed == 0 { idle + 1 } else { 0 };
            if idle == IDLE_RUNS && self.attack != Attack::Aimed {
                let text = format!("no blow landed in {IDLE_RUNS} runs: was the program protected at all?");
                return Err(Failure::Told(text));
            }
        }
    }

    /// One run under the hammer; returns the blows that landed.
    fn harmed(&self, launcher: &Launcher, unharmed: &View, seed: u64, report: &mut Report) -> Outcome<u32> {
        let plan = self.attack.plan(self.case, self.blows.saturating_sub(report.landed), report.runs);
        let hammer = Hammer::start(plan, launcher.room.session(NAME), seed);
        let counters = hammer.counters();
        let harness = Harness::Outlast { mutant: self.mutant.clone() };
        let view = self.view(launcher, &harness, seed, Some(unharmed));
        let landed = counters.landed.load(std::sync::atomic::Ordering::Relaxed);
        let blows = hammer.stop();
        diagnosis::note("control page", &blows.last);
        diagnosis::note("phases at kills of this run", blows.phases.to_string());
        let log = EventLog::ask(launcher);
        if let Ok(log) = &log {
            diagnosis::note("log", format!("\n    {}", log.tail(12)));
        }
        self.judge(&view?, unharmed, &blows, &log?, report)?;
        nothing_left_behind()?;
        Ok(landed)
    }

    fn judge(&self, view: &View, unharmed: &View, blows: &Blows, log: &EventLog, report: &mut Report) -> Outcome<()> {
        report.recovered += log.recoveries();
        report.phases.add(&log.phases());
        if let Some(difference) = view.differs_from(unharmed) {
            if self.setting.ring || blows.phases.of(phase::OPERATION) + log.phases().of(phase::OPERATION) == 0 {
                return Err(difference.into());
            }
            report.window += 1;
        }
        let allowed = self.setting.degradations();
        let surprise = blows.degradations.iter().find(|d| !allowed.contains(d) && !self.case.degradations.contains(d));
        if let Some(degradation) = surprise {
            return Err(Failure::Degradation(degradation.key().to_string()));
        }
        if self.case.stumbles && log.recoveries() == 0 {
            return Err(Failure::Told("the program did not stumble: it proves nothing".into()));
        }
        // The last kill may have met a program that had already called exit.
        if blows.kills > 1 && log.recoveries() == 0 {
            return Err(Failure::Told(format!("{} kills landed, but the log has no recovery", blows.kills)));
        }
        Ok(())
    }

    fn view(&self, launcher: &Launcher, harness: &Harness, seed: u64, unharmed: Option<&View>) -> Outcome<View> {
        let stage = Stage { room: launcher.room, port: free_port(), unharmed: unharmed.is_none() };
        let program = (self.case.start)(&stage)?;
        let drive = (self.case.drive)(&stage);
        let Seen { streams, screens, status } =
            drive.perform(launcher.program(&program, harness), launcher.room, seed, unharmed)?;
        let files = files_in(&launcher.room.work())?;
        Ok(View { status: status.unwrap_or(Status::Unseen), streams, screens, files })
    }
}

/// Waits until nothing of the run is alive. The test's time limit bounds it.
fn nothing_left_behind() -> Outcome<()> {
    for _ in 0..2_000 {
        tree::reap();
        if tree::descendants(std::process::id() as i32).iter().all(|s| s.state == 'Z') {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let left: Vec<String> = tree::sweep().iter().map(|s| format!("{} ({})", s.pid, s.comm)).collect();
    Err(Failure::Told(format!("left behind after the program's end: {}", left.join(", "))))
}

/// A port below the range that the kernel hands out, different for tests that run at the same time.
fn free_port() -> u16 {
    10_000 + (std::process::id() % 20_000) as u16
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { runs, landed, recovered, window, phases } = self;
        write!(f, "report runs={runs} landed={landed} recovered={recovered} window={window} | {phases}")
    }
}

impl Report {
    /// The inverse of `Display`; `None` if `line` is no report.
    pub fn parse(line: &str) -> Option<Report> {
        let (numbers, phases) = line.strip_prefix("report ")?.split_once('|')?;
        let number = |name: &str| {
            let word = numbers.split_whitespace().find_map(|w| w.strip_prefix(name)?.strip_prefix('='))?;
            word.parse().ok()
        };
        Some(Report {
            runs: number("runs")?,
            landed: number("landed")?,
            recovered: number("recovered")?,
            window: number("window")?,
            phases: Histogram::parse(phases),
        })
    }

    pub fn add(&mut self, other: &Report) {
        self.runs += other.runs;
        self.landed += other.landed;
        self.recovered += other.recovered;
        self.window += other.window;
        self.phases.add(&other.phases);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_back() {
        let mut report = Report { runs: 3, landed: 20, recovered: 19, window: 1, phases: Histogram::default() };
        report.phases.count(2);
        assert_eq!(Report::parse(&report.to_string()), Some(report));
    }
}
