//! A person's wish that modules protect a program that runs otherwise, as the command brings it to the supervisor: see
//! [`change`](crate::change).

use crate::decision::{Change, Parts};
use crate::error::Error;
use crate::meta::Meta;
use crate::orphans::is_alive;
use crate::program_folder::ProgramFolder;
use crate::wish::{read, write};
use crate::{forward, futex, processes, status};
use outlast_image::control::state;
use rustix::fs::{flock, FlockOperation, OFlags};
use rustix::process::{pidfd_send_signal, Signal};
use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// The wish, while it is written, and once somebody has begun to see to it.
pub(crate) const WISH: &str = "change";
const UNFINISHED: &str = "change.new";
pub(crate) const BEGUN: &str = "change.begun";
/// What became of it, and while that is written.
pub(crate) const ANSWER: &str = "change.answer";
pub(crate) const UNFINISHED_ANSWER: &str = "change.answer.new";
/// Held by who asks: one at a time.
const LOCK: &str = "change.lock";
/// What protects the program, by the word of its supervisor.
pub(crate) const PARTS: &str = "modules";
pub(crate) const UNFINISHED_PARTS: &str = "modules.new";

/// All of these that mean something to a supervisor, or to who looks.
pub(crate) const FILES: [&str; 4] = [WISH, BEGUN, ANSWER, PARTS];

/// How long all that may take, and how often a supervisor is asked to look: it may have other things to do.
const PATIENCE: Duration = Duration::from_secs(20);
const PULSE: Duration = Duration::from_millis(20);
const FIRST: Duration = Duration::from_millis(1);
/// How long the engine may take to come to a point where it changes its ways.
const ENGINE: Duration = Duration::from_secs(5);
/// How long a supervisor may be stopped before nothing is expected of it.
const STOPPED: Duration = Duration::from_secs(1);
/// It is knocked at once in so many pulses.
const KNOCKS: u32 = 5;
/// So often in a row nothing of it is found to run, and it is dead.
const DEAD: u32 = 3;
/// How often it is asked for again what a supervisor had begun that is gone.
const TRIES: u32 = 3;

#[derive(Serialize, Deserialize)]
pub(crate) struct Wish {
    pub number: u64,
    pub change: Change,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Answer {
    pub number: u64,
    pub outcome: Outcome,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum Outcome {
    Done,
    Refused(String),
    /// A supervisor had begun with it, and is gone; nothing is otherwise.
    Interrupted,
}

/// Whether the engine goes by what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Yes,
    /// It will, before anything else, once the program runs.
    NotYet,
}

/// Changes the modules of a program that runs.
///
/// # Errors
/// All is as it was.
pub fn ask(folder: &ProgramFolder, change: &Change) -> Result<Taken, Error> {
    let asked = Instant::now();
    let _lock = lock(folder, asked)?;
    for _ in 0..TRIES {
        match ask_once(folder, change, asked)? {
            Outcome::Done => return Ok(await_engine(folder)),
            Outcome::Refused(why) => return Err(not_changed(folder, why)),
            Outcome::Interrupted => (),
        }
    }
    Err(not_changed(folder, "its supervisor fails at it; `outlast log` says why".into()))
}

/// What protects a program, by the word of its supervisor; none if that has said nothing.
pub fn parts(folder: &ProgramFolder) -> Option<Parts> {
    decoded(folder, PARTS)
}

fn not_changed(folder: &ProgramFolder, why: String) -> Error {
    Error::NotChanged(folder.name().into(), why)
}

fn lock(folder: &ProgramFolder, asked: Instant) -> Result<OwnedFd, Error> {
    let file = folder.open_file(LOCK, OFlags::CREATE | OFlags::RDWR)?;
    while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if asked.elapsed() > PATIENCE {
            return Err(not_changed(folder, "somebody else changes it just now".into()));
        }
        std::thread::sleep(PULSE);
    }
    Ok(file)
}

fn ask_once(folder: &ProgramFolder, change: &Change, asked: Instant) -> Result<Outcome, Error> {
    let mut number = [0; 8];
    rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| Error::Kernel("draw a number", e))?;
    let wish = Wish { number: u64::from_ne_bytes(number), change: change.clone() };
    folder.remove(ANSWER);
    write(folder, UNFINISHED, &encoded(&wish))?;
    folder.rename(UNFINISHED, WISH)?;
    let (mut pulse, mut dead) = (FIRST, 0);
    loop {
        if let Some(answer) = answer(folder, wish.number) {
            return Ok(answer);
        }
        dead = if lives(folder) { 0 } else { dead + 1 };
        let is_stopped = asked.elapsed() > STOPPED && is_stopped(folder);
        let is_over = asked.elapsed() > PATIENCE || is_stopped;
        if dead > DEAD {
            // Nobody will answer before it is resumed, if it is.
            folder.remove(WISH);
            let is_made =
                Meta::read(folder).is_ok_and(|meta| meta.changed.is_some_and(|made| made.wish == wish.number));
            return if is_made { Ok(Outcome::Done) } else { Err(Error::NotRunning(folder.name().into())) };
        }
        // One that somebody has begun with is theirs to answer.
        if is_over && !folder.has(BEGUN) {
            folder.remove(WISH);
            return match answer(folder, wish.number) {
                Some(answer) => Ok(answer),
                None if is_stopped => {
                    Err(not_changed(folder, "it is stopped, and its supervisor with it; continue it first".into()))
                }
                None => Err(not_changed(folder, "its supervisor does not answer".into())),
            };
        }
        if asked.elapsed() > 2 * PATIENCE {
            let why = "its supervisor has begun with it and does not answer; `outlast module list` says what is so";
            return Err(not_changed(folder, why.into()));
        }
        wake_supervisor(folder);
        std::thread::sleep(pulse);
        pulse = (2 * pulse).min(PULSE);
    }
}

pub(crate) fn encoded(value: &impl Serialize) -> Vec<u8> {
    // There is nothing in it that JSON has no words for.
    serde_json::to_vec(value).unwrap_or_default()
}

pub(crate) fn decoded<T: for<'a> Deserialize<'a>>(folder: &ProgramFolder, file: &str) -> Option<T> {
    serde_json::from_slice(&read(folder, file).ok()?).ok()
}

fn answer(folder: &ProgramFolder, number: u64) -> Option<Outcome> {
    let answer: Answer = decoded(folder, ANSWER)?;
    (answer.number == number).then_some(answer.outcome)
}

fn is_watched(folder: &ProgramFolder) -> bool {
    Meta::read(folder).is_ok_and(|meta| meta.supervisor.is_alive())
}

/// Is there anything of it that runs?
fn lives(folder: &ProgramFolder) -> bool {
    folder.open_session().is_ok_and(|session| is_alive(&session)) || is_watched(folder)
}

fn is_stopped(folder: &ProgramFolder) -> bool {
    Meta::read(folder).is_ok_and(|meta| processes::is_stopped(meta.supervisor.pid))
}

/// Whoever it is by now.
fn wake_supervisor(folder: &ProgramFolder) {
    let Ok(supervisor) = Meta::read(folder).map(|meta| meta.supervisor) else { return };
    let Ok(pidfd) = processes::open(supervisor.pid) else { return };
    if supervisor.is_alive() {
        // It is woken by it, and passes it on to nobody. One that ends meanwhile has another after it.
        let _ = pidfd_send_signal(&pidfd, Signal::CHILD);
    }
}

/// Waits until the engine goes by what it was told.
fn await_engine(folder: &ProgramFolder) -> Taken {
    let asked = Instant::now();
    for n in 1u32.. {
        if asked.elapsed() > ENGINE {
            break;
        }
        // Another one where the program has become another.
        let Ok(session) = folder.open_session() else { return Taken::Yes };
        let control = session.control();
        let taken = control.ways_taken.load(Acquire);
        if control.ways_wanted.load(Acquire) == taken || control.state.load(Acquire) == state::SUSPENDED {
            return Taken::Yes;
        }
        // The supervisor's knock may have met it where it could not answer, or a process that is dead now.
        let supervisor = Meta::read(folder).ok().map(|meta| meta.supervisor.pid);
        let is_protected = control.state.load(Acquire) == state::PROTECTED;
        if let Some(pid) = status::program(&session, supervisor).filter(|_| is_protected && n % KNOCKS == 0) {
            forward::pass_the_gate(pid);
        } else if !lives(folder) {
            break;
        }
        futex::wait(&control.ways_taken, taken, PULSE);
    }
    Taken::NotYet
}
