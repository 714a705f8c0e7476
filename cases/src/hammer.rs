//! The hammer: kills at seeded random moments, start-up and recovery included.

use std::io;
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

use crate::control_page::ControlPage;
use crate::histogram::Histogram;
use crate::tracer;
use crate::tree::{self, Victim};

/// Whom a blow hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Program,
    Anchor,
    /// The anchor first, then the program: nothing of the process is left but the store.
    ProgramAndAnchor,
    /// The parent of the program.
    Supervisor,
    /// Supervisor, anchor and program.
    Everything,
    /// The program, which is not killed but visited by a debugger.
    Debugged,
    /// The program, which is stopped and continued.
    Stopped,
    /// Every process of the tree that carries the program's name, as `killall -9` does.
    Named,
}

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
        let ends_supervisor = matches!(target, Target::Supervisor | Target::Everything);
        self.swing.reviving.store(ends_supervisor, SeqCst);
        let landed = match target {
            Target::Program => self.hit_program(page, signal),
            Target::Anchor => strike_pid(control.anchor_pid.load(Relaxed)),
            Target::ProgramAndAnchor => {
                let anchor = strike_pid(control.anchor_pid.load(Relaxed));
                strike_program(control) && anchor
            }
            Target::Supervisor => supervisor(control).is_some_and(|v| kill_all(&[v])),
            Target::Everything => {
                let anchor = Victim::open(control.anchor_pid.load(Relaxed));
                // Opened before the first is hit: once parents are gone nobody could be found by parenthood.
                match (supervisor(control), program(control)) {
                    (Some(s), Some(p)) => kill_all(&[s, p].into_iter().chain(anchor).collect::<Vec<_>>()),
                    _ => false,
                }
            }
            Target::Debugged => self.visit(control),
            Target::Stopped => self.stop_for_a_moment(control),
            Target::Named => strike_named(control),
        };
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

    /// Hits the program, in the phase aimed at if there is one; false if there was nobody to hit.
    fn hit_program(&self, page: &ControlPage, signal: Signal) -> bool {
        let control = page.control();
        let Some(victim) = program(control) else { return false };
        if signal != Signal::KILL && !self.await_commit(control) {
            return false;
        }
        if !spin_until(|| self.plan.aim.is_none_or(|wanted| page.phase() == wanted))
            || !spin_until(|| self.plan.avoid != Some(page.phase()))
        {
            return false;
        }
        if !victim.strike(signal) {
            return false;
        }
        signal != Signal::KILL || victim.await_death(2_000)
    }

    /// Attaches and detaches; false if the program was gone, or refused for so long that somebody else must be attached.
    fn visit(&self, control: &Control) -> bool {
        let patience = Instant::now() + Duration::from_millis(500);
        loop {
            let Some(victim) = program(control) else { return false };
            match tracer::visit(victim.pid) {
                Ok(()) => return true,
                // At an exec the supervisor is attached for a moment.
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied && Instant::now() < patience => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(_) => return false,
            }
        }
    }

    /// Whoever is stopped may be killed by nobody meanwhile: it goes on where it was.
    fn stop_for_a_moment(&self, control: &Control) -> bool {
        let Some(victim) = program(control) else { return false };
        let stopped = victim.strike(Signal::STOP);
        thread::sleep(Duration::from_millis(2));
        stopped && victim.strike(Signal::CONT)
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

/// The program, or the process that is just being restored as the program.
fn program(control: &Control) -> Option<Victim> {
    Victim::open(control.program_pid.load(Relaxed)).or_else(|| Victim::open(control.new_pid.load(Relaxed)))
}

fn strike_program(control: &Control) -> bool {
    program(control).is_some_and(|v| v.strike(Signal::KILL))
}

fn strike_pid(pid: i32) -> bool {
    Victim::open(pid).is_some_and(|v| v.strike(Signal::KILL))
}

fn supervisor(control: &Control) -> Option<Victim> {
    // Once its supervisor is gone the program is the keeper's child, which is no part of the tree.
    Victim::open(tree::stat(control.program_pid.load(Relaxed))?.parent)
}

/// Kills them at once, then waits until they are gone; false if the first was gone already.
fn kill_all(victims: &[Victim]) -> bool {
    let landed: Vec<bool> = victims.iter().map(|v| v.strike(Signal::KILL)).collect();
    victims.iter().all(|v| v.await_death(2_000)) && landed[0]
}

fn strike_named(control: &Control) -> bool {
    let Some(name) = tree::stat(control.program_pid.load(Relaxed)).map(|s| s.comm) else { return false };
    let named = tree::descendants().into_iter().filter(|s| s.comm == name && s.state != 'Z');
    let victims: Vec<Victim> = named.filter_map(|s| Victim::open(s.pid)).collect();
    victims.iter().filter(|v| v.strike(Signal::KILL)).count() > 0
}
