//! Table 2: sessions of programs that wait for a person, the same on both sides, key by key.
//!
//! As in the paper (section 5.2) each key is pressed a fixed time after the program asked for it, so that what protection costs is
//! never hidden in the wait. The sides take turns: a key to one, its answer awaited, then the same key to the other.

use super::attention::{sleep_precisely, Attention};
use super::programs::{Program, Stage};
use super::results::{Application, Log, Played, Typed};
use super::sessions::Act;
use crate::cpu;
use crate::evaluation::progress::Progress;
use crate::failure::Outcome;
use crate::launch::Side;
use crate::measurement::sides;
use crate::workshop::Workshop;
use outlast_image::control::Control;
use outlast_supervisor::session::Session;
use rustix::process::Pid;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// No key is answered so late.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a program may take to leave.
const LEAVING: Duration = Duration::from_secs(2);

/// What is to be measured.
#[derive(Clone, Copy)]
pub struct Order {
    pub seed: u64,
    pub rounds: usize,
    pub quick: bool,
}

/// All rounds of one program.
pub fn measure(program: Program, order: Order, workshop: &Workshop, progress: &Progress) -> Application {
    let mut application = Application {
        name: program.name().into(),
        delay_ms: program.delay().as_secs_f64() * 1e3,
        session: program.session().into(),
        rounds: Vec::new(),
        obstacle: None,
        conditions: String::new(),
    };
    let acts = program.acts(order.seed, program.length(order.quick));
    for number in 0..order.rounds {
        progress.say(format!("{}, session {} of {}", program.name(), number + 1, order.rounds));
        match play(program, &acts, number, workshop, progress) {
            Ok((played, conditions)) => {
                application.rounds.push(played);
                application.conditions = conditions;
            }
            Err(failure) => {
                application.obstacle = Some(failure.to_string());
                break;
            }
        }
    }
    application
}

/// Tenths of a second that all rounds of one program take.
pub fn tenths(program: Program, order: Order) -> u64 {
    (order.rounds * program.length(order.quick)) as u64 * program.delay().as_millis() as u64 / 100
}

/// One side, while it is played.
struct Player {
    stage: Stage,
    side: Side<'static>,
    attention: Attention,
    typed: Typed,
    /// When it asked for the next key.
    asked: Instant,
    program: Pid,
    watchers: Vec<Pid>,
}

fn play(
    program: Program,
    acts: &[Act],
    number: usize,
    workshop: &Workshop,
    progress: &Progress,
) -> Outcome<(Played, String)> {
    sleep_precisely();
    let mut players = Vec::new();
    for (side, place) in sides(number, &[]).into_iter().zip(["a", "b"]) {
        players.push(Player::begin(program, program.start(workshop, side, place)?, side)?);
    }
    let before: Vec<[Duration; 2]> = players.iter().map(Player::used).collect();
    let protected = players.iter().position(|player| player.side != Side::Native).unwrap_or(0);
    let counters = Counters::reset(players[protected].stage.running.session()?.control());
    for (n, act) in acts.iter().enumerate() {
        // Each side goes first at every other key.
        for i in [n % 2, 1 - n % 2] {
            players[i].take(act, program)?;
        }
        progress.passed(program.delay());
    }
    let (commits, log, trapped) = counters.since(players[protected].stage.running.session().map(Session::control)?);
    for (player, [own, watchers]) in players.iter_mut().zip(before) {
        let now = player.used();
        player.typed.program_us = micros(now[0].saturating_sub(own));
        player.typed.watchers_us = micros(now[1].saturating_sub(watchers));
    }
    let conditions = players[protected].stage.running.conditions()?.to_string();
    for player in &mut players {
        player.leave(program);
    }
    let [first, second] = [0, 1].map(|i| players[i].typed.clone());
    let (native, protected) = if protected == 1 { (first, second) } else { (second, first) };
    Ok((Played { native, protected, commits, log, trapped }, conditions))
}

impl Player {
    fn begin(program: Program, mut stage: Stage, side: Side<'static>) -> Outcome<Self> {
        stage.terminal.settle()?;
        let pid = stage.running.program_pid()?;
        let watchers = stage.running.processes()?.into_iter().filter(|other| *other != pid).collect();
        let attention = Attention::to(pid)?;
        let (typed, asked) = (Typed::default(), Instant::now());
        let mut player = Self { stage, side, attention, typed, asked, program: pid, watchers };
        for act in program.opening() {
            player.take(&act, program)?;
        }
        player.typed.responses_us.clear();
        Ok(player)
    }

    /// The person thinks, acts, and waits until the program asks for more.
    fn take(&mut self, act: &Act, program: Program) -> Outcome<()> {
        std::thread::sleep((self.asked + program.delay()).saturating_duration_since(Instant::now()));
        let before = self.attention.look()?;
        let pressed = Instant::now();
        self.stage.act(act)?;
        self.asked = self.attention.asked(before, program.still(), PATIENCE)?;
        self.typed.responses_us.push(micros(self.asked - pressed));
        Ok(())
    }

    /// Processor time of the program, and of those who watch over it.
    fn used(&self) -> [Duration; 2] {
        [cpu::used(self.program), self.watchers.iter().map(|pid| cpu::used(*pid)).sum()]
    }

    /// One that does not leave is ended with the value.
    fn leave(&mut self, program: Program) {
        // A program that is gone already takes no more keys.
        let _ = self.stage.terminal.type_in(program.leaving());
        let until = Instant::now() + LEAVING;
        while self.attention.look().is_ok() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The engine's counters at one moment.
struct Counters {
    commits: u64,
    bytes: u64,
    trapped: u64,
}

impl Counters {
    fn reset(control: &Control) -> Self {
        // The engine raises it again when it commits.
        control.log_largest.store(0, std::sync::atomic::Ordering::Release);
        Self::now(control)
    }

    fn now(control: &Control) -> Self {
        let [commits, bytes, trapped] =
            [&control.commits, &control.log_bytes, &control.trapped_calls].map(|counter| counter.load(Acquire));
        Self { commits, bytes, trapped }
    }

    fn since(&self, control: &Control) -> (u64, Log, u64) {
        let now = Self::now(control);
        let log = Log { bytes: now.bytes - self.bytes, largest: control.log_largest.load(Acquire) };
        (now.commits - self.commits, log, now.trapped - self.trapped)
    }
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}
