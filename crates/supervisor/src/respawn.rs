//! Rung 2: a new process from the anchor, with the old descriptors, connections and process id.

use crate::end::End;
use crate::exec::Handover;
use crate::log::{Entry, Kind};
use crate::postponed::Postponed;
use crate::supervisor::Supervisor;
use crate::{clock, futex, names, oom_score, processes};
use libc::pid_t;
use outlast_image::control::{anchor_command, request, state, Control};
use outlast_image::degradation::Degradation;
use outlast_image::inject::option;
use rustix::io::Errno;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::{Duration, Instant};

/// A recovery on its way.
#[derive(Debug)]
pub struct Recovering {
    pub kind: Kind,
    pub rung: u32,
    pub cause: String,
    /// Monotonic nanoseconds.
    pub died: u64,
    pub seq: u64,
    /// One of [`outlast_image::event::phase`].
    pub phase: u32,
    /// Restores done before it.
    pub restored: u32,
}

/// How often the process id is asked for again: whoever has to reap the old process may take a moment.
const PID_TRIES: u32 = 20;
/// How often, while the old process is dead and waits for whoever has to reap it: not us, if we took over.
const REAP_TRIES: u32 = 2500;
/// How often, while it is reaped and its number not yet free: on a busy machine the one comes well after the other.
const GONE_TRIES: u32 = 250;
/// How often, beyond these, it is asked for a process that ends before it can be watched.
const MORE_TRIES: u32 = 1000;
/// Time between two of these tries.
const PID_PAUSE: Duration = Duration::from_millis(1);
/// How long an anchor that lives may take to answer before it counts as dead.
const ANCHOR_PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked after meanwhile.
const ANCHOR_CHECK: Duration = Duration::from_millis(1);

/// Why there is no new process.
pub enum Unborn {
    /// The kernel has no memory for one, or allows no more of them (`pids.max`): that may pass.
    Lacking,
    /// The anchor cannot make one, or is gone.
    Impossible,
}

/// What an anchor answered.
enum Answer {
    Born(pid_t),
    Refused(Errno),
    /// It is gone.
    None,
}

/// How often to ask for the process id of a process that was found dead.
fn tries_for(pid: pid_t) -> u32 {
    match (processes::is_dead(pid), processes::is_running(pid)) {
        (true, _) => REAP_TRIES,
        (false, false) => GONE_TRIES,
        // Another process has it.
        (false, true) => PID_TRIES,
    }
}

impl Supervisor {
    /// Brings the program back from its last commit; `Some` if that is not possible any more.
    pub(crate) fn recover(&mut self, signal: i32, died: u64) -> Option<End> {
        let control = self.generation.control();
        let (phase, seq) = (control.phase.load(Acquire), control.last_seq.load(Acquire));
        let restored = control.restored.load(Acquire);
        control.t_death.store(died, Release);
        // Signals that are sent from now on meet nobody.
        control.born_at.store(u64::MAX, Release);
        let dead = self.pid;
        let born = self.respawn();
        if matches!(born, Err(Unborn::Lacking)) {
            // A fresh process would lack the same, and the anchor would be lost for it.
            if let Some(patience) = self.decides.refused() {
                self.postponed = Some(Postponed::until(patience, signal, died));
                return None;
            }
        }
        self.decides.born();
        let cause = names::signal(signal);
        // What the engine had to say happened before; the program need not wait for it to be written.
        self.drain_events();
        self.log.add(&Entry::new(Kind::Killed).cause(&*cause).phase(phase).seq(seq).pid(dead));
        let Ok(pid) = born else {
            // One that was made by an anchor which then died may have gone on and come to the program's end before anybody had heard of it.
            let control = self.generation.control();
            if control.state.load(Acquire) == state::EXITING {
                return Some(End::Exited(control.exit_code.load(Acquire) & 0xff));
            }
            return self.cold_resume(&cause, died);
        };
        self.pid = pid;
        self.generation.control().program_pid.store(pid, Release);
        self.follow();
        // Who dies on the way back to an older generation has still to go back there, and the log to say so.
        let goes_back = |recovering: &Recovering| recovering.kind == Kind::WentBack && recovering.restored == restored;
        let fresh = Recovering { kind: Kind::Recovered, rung: 2, cause, died, seq, phase, restored };
        self.recovering = Some(match self.recovering.take().filter(goes_back) {
            Some(back) => Recovering { kind: back.kind, rung: back.rung, cause: back.cause, ..fresh },
            None => fresh,
        });
        None
    }

    /// A new process from the anchor, with the old process id if that can be had.
    pub(crate) fn respawn(&mut self) -> Result<pid_t, Unborn> {
        let mut wanted = if self.may_choose_pid { self.meta.pid } else { 0 };
        for attempt in 0..REAP_TRIES + MORE_TRIES {
            // Who was born and died may have changed it in between.
            self.find_anchor();
            self.generation.anchor(&self.kin).ok_or(Unborn::Impossible)?;
            // Looked at before: afterwards it may have been reaped, and the next try would succeed.
            let waits = attempt < PID_TRIES || attempt < tries_for(wanted);
            match self.ask_to_respawn(wanted) {
                // A stranger that ended already cannot be watched any more.
                Answer::Born(pid) if self.kin.adopt(pid).is_err() => (),
                Answer::Born(pid) => return Ok(self.receive(pid)),
                Answer::Refused(Errno::EXIST) if wanted != 0 && self.vacate(wanted) => (),
                Answer::Refused(Errno::EXIST) if wanted != 0 && waits => std::thread::sleep(PID_PAUSE),
                Answer::Refused(Errno::NOMEM | Errno::AGAIN) => return Err(Unborn::Lacking),
                Answer::Refused(e) if wanted != 0 => {
                    self.may_choose_pid &= !matches!(e, Errno::PERM | Errno::NOSYS);
                    wanted = 0;
                }
                // A fresh process may be possible.
                Answer::Refused(_) => return Err(Unborn::Impossible),
                Answer::None => return self.unreported_birth().map(|pid| self.receive(pid)).ok_or(Unborn::Impossible),
            }
        }
        Err(Unborn::Impossible)
    }

    /// The kernel gives a number to no process while others are in the group of this number: they leave it, where all are in the
    /// session in which this process is. False: none has.
    fn vacate(&mut self, group: pid_t) -> bool {
        if self.meta.options.bits & option::OWN_SESSIONS == 0 {
            return false;
        }
        let (ours, before) = (processes::group_of(0), self.outside.len());
        let members = processes::all().filter(|pid| *pid != group && processes::group_of(*pid) == group);
        self.outside.extend(members.filter(|pid| processes::set_group(*pid, ours).is_ok()));
        self.outside.len() > before
    }

    /// It has its group again, whatever its number is.
    fn return_to_group(&mut self) {
        let group = processes::group_of(self.pid);
        for pid in self.outside.drain(..) {
            // One that has ended meanwhile is in none.
            let _ = processes::set_group(pid, group);
        }
    }

    /// The process that goes on with the program.
    fn receive(&mut self, pid: pid_t) -> pid_t {
        self.put_in_place(pid);
        if pid != self.meta.pid && self.generation.degrade(Degradation::PidChanged) {
            self.log.add(&Entry::new(Kind::Degradation).cause(Degradation::PidChanged.key()).pid(pid));
        }
        pid
    }

    fn ask_to_respawn(&mut self, wanted: pid_t) -> Answer {
        let asked_ones = self.generation.anchors();
        let control = self.generation.control();
        control.wanted_pid.store(wanted, Release);
        control.anchor_done.store(0, Release);
        control.new_pid.store(0, Release);
        control.anchor_command.store(anchor_command::RESPAWN, Release);
        futex::wake(&control.anchor_command);
        let asked = Instant::now();
        while self.generation.control().anchor_done.load(Acquire) == 0 {
            futex::wait(&self.generation.control().anchor_done, 0, ANCHOR_CHECK);
            // In the middle of a change the one that serves has the other end first.
            self.find_anchor();
            let is_there = self.generation.anchor(&self.kin).is_some();
            let is_asked_one_there = asked_ones.iter().any(|pid| self.kin.has(*pid) && self.kin.is_alive(*pid));
            let control = self.generation.control();
            let (answered, born) = (control.anchor_done.load(Acquire) != 0, control.new_pid.load(Acquire));
            if !answered && is_there && !is_asked_one_there && born > 0 {
                // The process itself has changed its anchor, and ended the one that made it before that could answer.
                control.anchor_command.store(anchor_command::NONE, Release);
                return Answer::Born(born);
            }
            if !answered && (!is_there || asked.elapsed() > ANCHOR_PATIENCE) {
                return Answer::None;
            }
        }
        match self.generation.control().new_pid.load(Acquire) {
            pid if pid > 0 => Answer::Born(pid),
            error => Answer::Refused(Errno::from_raw_os_error(-error)),
        }
    }

    /// An anchor that dies may have made a process just before, and must not have two of them run. Who is born says so itself: others
    /// that hold the session are former anchors, or some whose maker died before it could announce them.
    fn unreported_birth(&mut self) -> Option<pid_t> {
        let anchors = self.generation.anchors();
        anchors.into_iter().for_each(|anchor| self.kin.kill(anchor));
        let (control, asked) = (self.generation.control(), Instant::now());
        let (respawn, none) = (anchor_command::RESPAWN, anchor_command::NONE);
        if control.anchor_command.compare_exchange(respawn, none, AcqRel, Acquire).is_ok() {
            // It had not begun.
            return None;
        }
        while control.new_pid.load(Acquire) == 0 {
            let may_come = self.adopted || self.generation.holders().iter().any(|pid| !anchors.contains(pid));
            if !may_come || asked.elapsed() > ANCHOR_PATIENCE {
                return None;
            }
            std::thread::sleep(ANCHOR_CHECK);
        }
        self.kin.holder(&self.generation.session, control.new_pid.load(Acquire))
    }

    /// Takes back what a supervisor that died had asked the anchor for, or waits until it is done.
    pub(crate) fn settle_respawn(&self) {
        let control = self.generation.control();
        let word = &control.anchor_command;
        let _ = word.compare_exchange(anchor_command::RESPAWN, anchor_command::NONE, AcqRel, Acquire);
        let asked = Instant::now();
        while word.load(Acquire) == anchor_command::BUSY && asked.elapsed() < ANCHOR_PATIENCE {
            if self.generation.anchor(&self.kin).is_none() {
                return;
            }
            futex::wait(word, anchor_command::BUSY, ANCHOR_CHECK);
        }
    }

    /// Reports a recovery once the engine has finished it.
    pub(crate) fn on_restored(&mut self) {
        let control = self.generation.control();
        let restored = control.restored.load(Acquire);
        let Some(recovering) = self.recovering.take_if(|r| r.restored != restored) else { return };
        let resumed = match control.t_resumed.load(Acquire) {
            t if t > recovering.died => t,
            _ => clock::monotonic(),
        };
        self.return_to_group();
        self.repeat_requests();
        self.send_missed();
        self.look_at_credentials();
        let entry = Entry::at(clock::time_of_day(resumed), recovering.kind);
        let took = Duration::from_nanos(resumed - recovering.died);
        self.log.add(
            &entry
                .cause(recovering.cause)
                .rung(recovering.rung)
                .took(took)
                .phase(recovering.phase)
                .seq(recovering.seq)
                .pid(self.pid),
        );
        self.note_recovery(resumed);
        if self.is_stopped {
            // SAFETY: plain system call; the process is ours and not reaped, so that the number is its own.
            unsafe { libc::kill(self.pid, libc::SIGSTOP) };
        }
        // A kill that came while there was no process met nobody.
        if self.is_killed || self.is_meant() {
            self.is_killed = true;
            self.kin.end(self.pid);
        }
    }

    /// Has the program make itself a new anchor, as soon as it can hear the request.
    pub(crate) fn ask_for_anchor(&mut self) {
        self.anchor_lost = true;
        let control: &Control = self.generation.control();
        control.request.fetch_or(request::ANCHOR, AcqRel);
        futex::wake(&control.request);
        self.repeat_requests();
    }

    /// Asks again for what could not be heard while the program was restored, or was about to become another one: a
    /// knock would end one that has no engine yet.
    pub(crate) fn repeat_requests(&self) {
        let control = self.generation.control();
        let hears = control.state.load(Acquire) == state::PROTECTED && self.recovering.is_none();
        let is_asked =
            control.request.load(Acquire) != 0 || control.ways_wanted.load(Acquire) != control.ways_taken.load(Acquire);
        if hears && matches!(self.handover, Handover::None) && is_asked {
            self.pass_the_gate();
        }
    }

    /// Watches a new anchor, and reports it if the one before was lost: some the engine changes on purpose.
    pub(crate) fn on_anchor_served(&mut self) {
        let anchor = self.generation.control().anchor_pid.load(Acquire);
        if anchor == self.anchor || anchor <= 0 {
            return;
        }
        let fd = self.generation.session.inject_args().session_fd;
        if !processes::holds(anchor, fd, self.generation.session.file()) || self.kin.adopt(anchor).is_err() {
            return;
        }
        if std::mem::take(&mut self.anchor_lost) && self.anchor > 0 {
            self.log.add(&Entry::new(Kind::AnchorRenewed).pid(anchor));
        }
        oom_score::exempt(anchor);
        self.anchor = anchor;
    }
}
