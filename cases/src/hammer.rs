//! The hammer: kills at seeded random moments, start-up and recovery included.

use std::path::PathBuf;
use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use outlast_image::control::{state, Control};
use outlast_image::degradation::Degradation;
use outlast_image::event::phase;
use rustix::process::Signal;

use crate::blow::{self, Blow, Target};
use crate::control_page::ControlPage;
use crate::histogram::Histogram;

/// What the hammer does during a run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub targets: Vec<Target>,
    /// Signals for [`Target::Program`]; all other targets get SIGKILL.
    pub signals: Vec<Signal>,
    /// Shortest and longest pause between blows.
    pub pace: (Duration, Duration),
    /// Phase to wait for before a blow; any if none.
    pub aim: Option<usize>,
    /// Phase to let pass before a blow, as far as can be seen from outside.
    pub avoid: Option<usize>,
    /// Blows after which the program is left alone.
    pub blows: u32,
}

/// What the hammer did.
#[derive(Debug, Default)]
pub struct Blows {
    /// Blows that hit a living process.
    pub landed: u32,
    /// Those that hit the program, with SIGKILL.
    pub kills: u32,
    /// Phase of the program at each kill, as the control page showed it once the process was dead.
    pub phases: Histogram,
    /// Degradations seen in the control page at any time.
    pub degradations: Vec<Degradation>,
    /// A debugger was not let in.
    pub refused: bool,
    /// Whether the control page ever showed a commit.
    pub protected: bool,
    /// The control page at the end, in words.
    pub last: String,
}

/// What the test may see while the hammer swings.
#[derive(Default)]
pub struct Swing {
    stop: AtomicBool,
    pub landed: AtomicU32,
    /// Kills inside an operation, as far as can be seen from outside.
    pub in_operation: AtomicU32,
    /// A blow took the supervisor, and nobody has taken its place yet.
    pub reviving: AtomicBool,
}

/// Has somebody take the place of a dead supervisor.
pub type Revive = Box<dyn Fn() + Send>;

/// A running hammer.
pub struct Hammer {
    swing: Arc<Swing>,
    thread: JoinHandle<Blows>,
}

impl Hammer {
    /// Starts to hit the session whose file is, or will be, at `session`. `revive` is called when the supervisor was hit.
    pub fn start(plan: Plan, session: PathBuf, revive: Revive, seed: u64) -> Hammer {
        let swing = Arc::new(Swing::default());
        let hand = Hand {
            plan,
            session,
            revive,
            random: fastrand::Rng::with_seed(seed),
            swing: swing.clone(),
            blows: Blows::default(),
            page: None,
        };
        Hammer { swing, thread: thread::spawn(move || hand.swing()) }
    }

    /// Counters to be read from elsewhere.
    pub fn counters(&self) -> Arc<Swing> {
        self.swing.clone()
    }

    /// Lets the program alone from now on; returns what was done.
    pub fn stop(self) -> Blows {
        self.swing.stop.store(true, Relaxed);
        self.thread.join().expect("the hammer does not panic")
    }
}

struct Hand {
    plan: Plan,
    session: PathBuf,
    revive: Revive,
    random: fastrand::Rng,
    swing: Arc<Swing>,
    blows: Blows,
    page: Option<ControlPage>,
}

impl Hand {
    fn swing(mut self) -> Blows {
        while self.blows.landed < self.plan.blows && !self.stopped() {
            self.pause();
            if self.page.is_some() {
                self.hit();
            }
        }
        while !self.stopped() {
            self.look();
            thread::sleep(Duration::from_millis(1));
        }
        self.look();
        if let Some(page) = &self.page {
            self.blows.last = page.summary();
        }
        self.blows
    }

    fn stopped(&self) -> bool {
        self.swing.stop.load(Relaxed)
    }

    fn pause(&mut self) {
        let (low, high) = self.plan.pace;
        let micros = self.random.u64(low.as_micros() as u64..=high.as_micros() as u64);
        let until = Instant::now() + Duration::from_micros(micros);
        // Short programs come and go within a pause: looked for all the while.
        while !self.stopped() {
            self.look();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(Duration::from_millis(1)));
        }
    }

    /// Opens the session's page if it is new, and notes degradations.
    fn look(&mut self) {
        if self.page.as_ref().is_some_and(|page| !page.is_current(&self.session)) && self.session.exists() {
            self.page = None;
        }
        if self.page.is_none() {
            self.page = ControlPage::open(&self.session);
        }
        self.blows.protected |= self.page.as_ref().is_some_and(|page| page.control().commits.load(Relaxed) > 0);
        for degradation in self.page.iter().flat_map(ControlPage::degradations) {
            if !self.blows.degradations.contains(&degradation) {
                self.blows.degradations.push(degradation);
            }
        }
    }

    fn hit(&mut self) {
        let target = self.plan.targets[self.random.usize(..self.plan.targets.len())];
        let signal = self.plan.signals[self.random.usize(..self.plan.signals.len())];
        let Some(page) = &self.page else { return };
        let control = page.control();
        // Two deaths at once are another attack: who was hit before has come back, however long a busy machine takes.
        let both_live = || blow::has_anchor(control) && blow::program(control).is_some();
        if self.plan.targets.contains(&Target::Anchor) && !spin_until(both_live) {
            return;
        }
        let ends_supervisor = matches!(target, Target::Supervisor | Target::Everything);
        self.swing.reviving.store(ends_supervisor, SeqCst);
        let blow = match target {
            Target::Program => self.hit_program(page, signal),
            _ if !self.may_strike(page) => Blow::Missed,
            _ => blow::strike(target, control),
        };
        let landed = blow == Blow::Landed;
        self.blows.refused |= blow == Blow::Refused;
        if ends_supervisor && landed {
            (self.revive)();
        }
        if landed {
            self.blows.landed += 1;
            self.swing.landed.store(self.blows.landed, SeqCst);
        }
        self.swing.reviving.store(false, SeqCst);
        if let (true, Target::Program, Signal::KILL, Some(page)) = (landed, target, signal, &self.page) {
            self.blows.kills += 1;
            self.blows.phases.count(page.phase());
            self.swing.in_operation.store(self.blows.phases.of(phase::OPERATION), Relaxed);
        }
    }

    /// Hits the program, in the phase aimed at if there is one.
    fn hit_program(&self, page: &ControlPage, signal: Signal) -> Blow {
        let control = page.control();
        let Some(victim) = blow::program(control) else { return Blow::Missed };
        let ready = (signal == Signal::KILL || self.await_commit(control))
            && spin_until(|| self.plan.aim.is_none_or(|wanted| page.phase() == wanted))
            && self.may_strike(page);
        let landed = ready && victim.strike(signal) && (signal != Signal::KILL || victim.await_death(2_000));
        if landed {
            Blow::Landed
        } else {
            Blow::Missed
        }
    }

    /// Waits until the program is not where it is to be spared.
    fn may_strike(&self, page: &ControlPage) -> bool {
        spin_until(|| self.plan.avoid != Some(page.phase()))
    }

    /// A fatal signal twice at the same commit looks like a deterministic bug, for which giving up is right:
    /// waits until the program has committed since its last fault.
    fn await_commit(&self, control: &Control) -> bool {
        let faulted_at = control.fault_seq.load(Relaxed);
        let patience = Instant::now() + Duration::from_millis(200);
        while control.fault_repeats.load(Relaxed) > 0 && control.last_seq.load(Relaxed) <= faulted_at {
            if self.stopped() || Instant::now() > patience {
                return false;
            }
            thread::sleep(Duration::from_micros(100));
        }
        control.state.load(Relaxed) == state::PROTECTED
    }
}

/// Bounded: a phase may be rare in the program, and the program may end.
fn spin_until(condition: impl Fn() -> bool) -> bool {
    let patience = Instant::now() + Duration::from_millis(20);
    while !condition() {
        if Instant::now() > patience {
            return false;
        }
        std::hint::spin_loop();
    }
    true
}
