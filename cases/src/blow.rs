//! One blow: who is hit, and whether it met anybody.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use outlast_image::control::{state, Control};
use rustix::process::Signal;

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

/// What became of a blow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    Landed,
    /// There was nobody to hit.
    Missed,
    /// A debugger was not let in for so long that somebody else must be attached.
    Refused,
}

/// Hits whom the control page names.
pub fn strike(target: Target, control: &Control) -> Blow {
    let anchor = || Victim::open(control.anchor_pid.load(Relaxed));
    // All are opened before the first is hit: once parents are gone nobody could be found by parenthood.
    let victims: Option<Vec<Victim>> = match target {
        Target::Debugged => return visit(control),
        Target::Stopped => return stop_for_a_moment(control),
        Target::Named => Some(named_like_the_program(control)),
        Target::Program => program(control).map(|p| vec![p]),
        Target::Anchor => anchor().map(|a| vec![a]),
        Target::ProgramAndAnchor => anchor().and_then(|a| Some(vec![a, program(control)?])),
        Target::Supervisor => supervisor(control).map(|s| vec![s]),
        Target::Everything => {
            supervisor(control).and_then(|s| Some([s, program(control)?].into_iter().chain(anchor()).collect()))
        }
    };
    match victims {
        Some(victims) if kill_all(&victims) => Blow::Landed,
        _ => Blow::Missed,
    }
}

/// The program, or the process that is just being restored as the program.
pub fn program(control: &Control) -> Option<Victim> {
    Victim::open(control.program_pid.load(Relaxed)).or_else(|| Victim::open(control.new_pid.load(Relaxed)))
}

/// Whether there is an anchor to come back from.
pub fn has_anchor(control: &Control) -> bool {
    Victim::open(control.anchor_pid.load(Relaxed)).is_some()
}

/// `None` before the first commit: a supervisor that dies then has not yet started the program.
fn supervisor(control: &Control) -> Option<Victim> {
    if control.commits.load(Relaxed) == 0 {
        return None;
    }
    // Once its supervisor is gone the program is the keeper's child, which is no part of the tree.
    Victim::open(tree::stat(control.program_pid.load(Relaxed))?.parent)
}

fn named_like_the_program(control: &Control) -> Vec<Victim> {
    let name = tree::stat(control.program_pid.load(Relaxed)).map(|s| s.comm);
    // A process that is being restored still carries a name of outlast's: nobody who means the program says that.
    let Some(name) = name.filter(|name| !name.starts_with("outlast")) else { return Vec::new() };
    let named = tree::descendants().into_iter().filter(|s| s.comm == name && s.state != 'Z');
    named.filter_map(|s| Victim::open(s.pid)).collect()
}

/// Kills them at once, then waits until they are gone; false if the first was gone already.
fn kill_all(victims: &[Victim]) -> bool {
    let landed: Vec<bool> = victims.iter().map(|v| v.strike(Signal::KILL)).collect();
    victims.iter().all(|v| v.await_death(2_000)) && landed.first() == Some(&true)
}

/// Attaches and detaches.
fn visit(control: &Control) -> Blow {
    let patience = Instant::now() + Duration::from_millis(500);
    loop {
        let Some(victim) = program(control) else { return Blow::Missed };
        // A debugger that is there first keeps outlast out, which then says so.
        if control.state.load(Relaxed) == state::STARTING && Instant::now() < patience {
            thread::sleep(Duration::from_millis(1));
            continue;
        }
        match tracer::visit(victim.pid) {
            Ok(()) => return Blow::Landed,
            Err(e) if e.kind() != io::ErrorKind::PermissionDenied => return Blow::Missed,
            Err(_) if victim.is_dead() => return Blow::Missed,
            // At its start, and at an exec, the supervisor is attached for a moment.
            Err(_) if Instant::now() < patience => thread::sleep(Duration::from_millis(1)),
            Err(_) => return Blow::Refused,
        }
    }
}

/// Whoever is stopped may be killed by nobody meanwhile: it goes on where it was.
fn stop_for_a_moment(control: &Control) -> Blow {
    let Some(victim) = program(control) else { return Blow::Missed };
    let stopped = victim.strike(Signal::STOP);
    thread::sleep(Duration::from_millis(2));
    if stopped && victim.strike(Signal::CONT) {
        Blow::Landed
    } else {
        Blow::Missed
    }
}
