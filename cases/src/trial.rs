//! One test: a case under a setting and an attack, compared with its unharmed run.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::Ordering::Relaxed;

use outlast_image::event::phase;

use crate::attack::Attack;
use crate::case::{Case, Stage};
use crate::control_page::ControlPage;
use crate::diagnosis;
use crate::event_log::EventLog;
use crate::failure::{Failure, Outcome};
use crate::hammer::{Blows, Hammer, Revive, Swing};
use crate::launch::{Harness, Launcher, Tools, NAME};
use crate::patience::Patience;
use crate::report::Report;
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

/// Runs in a row that end without a single blow before the case is called too short.
const IDLE_RUNS: u32 = 40;

impl Trial<'_> {
    /// Runs the case unharmed, then harmed until enough blows have landed; `site` is the test's directory, `disk` another
    /// one on a disk.
    pub fn run(&self, tools: &Tools, site: &Path, disk: &Path) -> Outcome<Report> {
        let room = Room::new(site, disk, self.setting.user)?;
        let launcher = Launcher { tools: tools.clone(), room: room.clone(), setting: self.setting };
        let mut random = fastrand::Rng::with_seed(self.seed);

        diagnosis::note("run", "unharmed");
        let unharmed = self.view(&launcher, &Harness::Native, random.u64(..), None, &Swing::default())?;
        // Status 2 is what the programs of this crate end with when something does not hold.
        let fails = matches!(unharmed.status, Status::Signalled(_) | Status::Exited(2));
        if self.attack != Attack::Calm && fails {
            return Err(Failure::Told(format!("the program fails even when nobody harms it: {:?}", unharmed.status)));
        }
        let mut report = Report::default();
        let mut idle = 0;
        loop {
            report.runs += 1;
            diagnosis::begin(inquiry(&launcher));
            diagnosis::note("run", format!("{} ({} blows so far)", report.runs, report.landed));
            room.clear()?;
            let landed = self.harmed(&launcher, &unharmed, random.u64(..), &mut report)?;
            report.landed += landed;
            if self.attack.is_done(self.blows, report.landed, report.runs) {
                return Ok(report);
            }
            idle = if landed == 0 { idle + 1 } else { 0 };
            if idle == IDLE_RUNS {
                let text = format!("no blow landed in {IDLE_RUNS} runs: was the program protected at all?");
                return Err(Failure::Told(text));
            }
        }
    }

    /// One run under the hammer; returns the blows that landed.
    fn harmed(&self, launcher: &Launcher, unharmed: &View, seed: u64, report: &mut Report) -> Outcome<u32> {
        let plan = self.attack.plan(self.case, self.setting, self.blows.saturating_sub(report.landed), report.runs);
        let session = launcher.room.session(NAME);
        let hammer = Hammer::start(plan, session, revival(self.attack, launcher), seed);
        let swing = hammer.counters();
        let words = self.attack.options().iter().chain(self.case.options);
        let mut options: Vec<String> = words.map(|word| word.to_string()).collect();
        if self.attack.stores_on_disk() {
            options.extend(["--store".into(), launcher.room.store().display().to_string()]);
        }
        let harness = Harness::Outlast { options, mutant: self.mutant.clone() };
        let patience = (!self.setting.ring).then(|| Patience::start(swing.clone()));
        let view = self.view(launcher, &harness, seed, Some(unharmed), &swing);
        let lost_patience = patience.is_some_and(Patience::end);
        let landed = swing.landed.load(Relaxed);
        let blows = hammer.stop();
        diagnosis::note("control page", &blows.last);
        diagnosis::note("phases at kills of this run", blows.phases.to_string());
        let log = EventLog::ask(launcher);
        if let Ok(log) = &log {
            diagnosis::note("log", format!("\n    {}", log.telling(10)));
        }
        if let Ok(said) = fs::read_to_string(launcher.room.complaints()) {
            diagnosis::note("the command that followed a dead supervisor said", said);
        }
        if lost_patience {
            report.window += 1;
            return Ok(landed);
        }
        let mut view = view?;
        if self.case.given_up && !view.take_off_last_line("stderr", "is not recovered any more") {
            return Err(Failure::Told("nothing was said of a program that is given up".into()));
        }
        self.judge(&view, unharmed, &blows, &log?, report)?;
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
        let mut allowed = self.setting.degradations();
        allowed.extend(self.attack.degradations().iter().chain(self.case.degradations));
        let mut told = blows.degradations.iter().map(|d| d.key()).chain(log.degradations());
        if let Some(surprise) = told.find(|key| !allowed.iter().any(|d| d.key() == *key)) {
            return Err(Failure::Degradation(surprise.to_string()));
        }
        // A short program may have been gone before anybody saw its control page.
        if !blows.protected && !log.says_protected() {
            return Err(Failure::Told("the program was never protected".into()));
        }
        if blows.refused {
            return Err(Failure::Told("a debugger could not attach: somebody else is attached".into()));
        }
        if self.case.stumbles && log.recoveries() == 0 {
            return Err(Failure::Told("the program did not stumble: it proves nothing".into()));
        }
        // The last kill may have met a program that had already called exit, and one that dies before its first instruction
        // is simply started again.
        if blows.kills - blows.phases.of(phase::START) > 1 && log.recoveries() + log.deaths() == 0 {
            return Err(Failure::Told(format!("{} kills landed, but the log knows of none", blows.kills)));
        }
        Ok(())
    }

    fn view(
        &self,
        launcher: &Launcher,
        harness: &Harness,
        seed: u64,
        unharmed: Option<&View>,
        swing: &Swing,
    ) -> Outcome<View> {
        let stage = Stage { room: &launcher.room, port: free_port(), unharmed: unharmed.is_none() };
        let program = (self.case.start)(&stage)?;
        let drive = (self.case.drive)(&stage);
        let command = launcher.program(&program, harness);
        let seen = drive.perform(command, &launcher.room, seed, unharmed)?;
        nothing_left_behind(swing)?;
        if let Some(left) = launcher.room.left_on_disk()? {
            return Err(Failure::Told(format!("left behind on the disk after the program's end: {left}")));
        }
        let files = files_in(&launcher.room.work())?;
        let status = match seen.status {
            // That was the supervisor's end, not the program's.
            Some(Status::Signalled(9)) if self.attack.revival().is_some() => Status::Unseen,
            status => status.unwrap_or(Status::Unseen),
        };
        Ok(View { status, streams: seen.streams, screens: seen.screens, files })
    }
}

/// For a run that hangs: what the control page and the log say.
fn inquiry(launcher: &Launcher) -> diagnosis::Inquiry {
    let launcher = launcher.clone();
    Box::new(move || {
        let page = ControlPage::open(&launcher.room.session(NAME)).map(|page| page.summary());
        let log = EventLog::ask(&launcher).map(|log| log.telling(15)).unwrap_or_else(|failure| failure.to_string());
        format!("  control page: {}\n  log:\n    {log}\n", page.unwrap_or_else(|| "there is none".into()))
    })
}

/// What to do when the supervisor was hit: the command that takes its place is left running.
fn revival(attack: Attack, launcher: &Launcher) -> Revive {
    let launcher = launcher.clone();
    Box::new(move || {
        let Some(words) = attack.revival() else { return };
        let mut command = launcher.outlast(words);
        let said = File::create(launcher.room.complaints());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.map_or(Stdio::null(), Stdio::from));
        // If it cannot be started the program stays dead, and the test fails for that.
        let _ = command.spawn();
    })
}

/// Waits until nothing of the run is alive. A program whose supervisor was killed may have much to do yet.
fn nothing_left_behind(swing: &Swing) -> Outcome<()> {
    let mut looks = 0;
    for _ in 0..6_000 {
        let landed = swing.landed.load(Relaxed);
        let nobody = tree::descendants().iter().all(|s| s.state == 'Z');
        // The tree is not seen all at once: a blow meanwhile, what revives the program, and who just lost a parent may
        // have been missed.
        let quiet = nobody && !swing.reviving.load(Relaxed) && swing.landed.load(Relaxed) == landed;
        looks = if quiet { looks + 1 } else { 0 };
        if looks == 3 {
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
