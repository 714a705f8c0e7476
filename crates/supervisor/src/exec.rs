//! execve: the program becomes another one, and is protected again before that one's first instruction.
//!
//! The new image gets a store and a session of its own. Until its first commit the old ones, and the old anchor, stay: a
//! death in between goes back to the commit before the execve, which is then made again.

use crate::end::End;
use crate::error::Error;
use crate::generation::{file_name, Generation};
use crate::inject::{inject, Failure, Injection};
use crate::launch::Command;
use crate::log::{Entry, Kind};
use crate::program_folder::ProgramFolder;
use crate::stores::StorePlace;
use crate::supervisor::Supervisor;
use crate::trace::{self, Fault, Stop};
use crate::{clock, futex, own_proc, processes, reports};
use outlast_image::control::{exec_answer, exec_request as request, state, Control};
use outlast_image::degradation::Degradation;
use outlast_image::inject::mode;
use outlast_image::layout::CHILD_BASE;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::Duration;

/// How often the engine may fail to get into a new image before the program goes on without.
const INJECTION_TRIES: u32 = 3;
/// How often the words that nobody wakes us for, or that change and change back, are looked at meanwhile.
const PATIENCE: Duration = Duration::from_micros(300);
/// The same while the new image rings when it has made its first commit.
const PATIENCE_WITH_COMMIT: Duration = Duration::from_millis(3);

/// Where an execve is.
#[derive(Default)]
pub enum Handover {
    #[default]
    None,
    /// The program is traced, its execve is to come.
    Tracing,
    /// The program could not be traced: after its execve it runs without protection.
    Untraced,
    /// The engine is in the new image, whose first commit is to come. Until then the program is the one that it was; none: it was none.
    Waiting { previous: Option<Box<Generation>>, began: u64 },
}

impl Handover {
    pub fn is_tracing(&self) -> bool {
        matches!(self, Self::Tracing)
    }

    /// How long the supervisor may sleep.
    pub fn patience(&self) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::Waiting { .. } => Some(PATIENCE_WITH_COMMIT),
            Self::Tracing | Self::Untraced => Some(PATIENCE),
        }
    }
}

impl Supervisor {
    /// Serves the engine's requests about execve. They are states, not events: this may be called at any time.
    pub(crate) fn on_exec_request(&mut self) {
        self.settle_handover();
        let control = self.generation.control();
        let (request, answer) = (control.exec_request.load(Acquire), control.exec_ready.load(Acquire));
        match request {
            // The engine did not wait for ever, or could not be traced.
            request::EXEC if !self.handover.is_tracing() && self.has_left() => {
                self.go_unprotected(Degradation::TraceForbidden, "it was not traced when it became another");
            }
            request::EXEC if answer == exec_answer::NONE => {
                let traced = self.handover.is_tracing()
                    || self.may_exec_protected() && trace::seize(self.execing_thread()).is_ok();
                // One that cannot be traced because it is dead needs no answer.
                if traced || self.kin.is_alive(self.pid) {
                    let answer = if traced { exec_answer::TRACED } else { exec_answer::UNTRACED };
                    // The engine may have given up waiting just then.
                    let told = answer_to_execve(self.generation.control(), answer);
                    if traced && !told {
                        self.let_go();
                    }
                    self.handover = if traced && told { Handover::Tracing } else { Handover::Untraced };
                }
            }
            request::EXEC if answer == exec_answer::UNTRACED => self.handover = Handover::Untraced,
            request::FAILED => {
                // First the answer: the next request must find none.
                control.exec_ready.store(exec_answer::NONE, Release);
                if std::mem::take(&mut self.handover).is_tracing() {
                    self.let_go();
                }
                let control = self.generation.control();
                let _ = control.exec_request.compare_exchange(request::FAILED, request::NONE, AcqRel, Acquire);
                futex::wake(&control.exec_request);
                self.repeat_requests();
            }
            _ => (),
        }
    }

    /// The thread that is about to exec, by the engine's word: where that is none of the program's, the program itself.
    fn execing_thread(&self) -> libc::pid_t {
        let tid = self.generation.control().exec_tid.load(Acquire);
        match tid > 0 && std::path::Path::new(&format!("/proc/{}/task/{tid}", self.pid)).exists() {
            true => tid,
            false => self.pid,
        }
    }

    fn may_exec_protected(&self) -> bool {
        self.injection_faults < INJECTION_TRIES
    }

    /// Whether the program runs another image than the one that the session is of: an execve closes it, and unmaps it.
    fn has_left(&self) -> bool {
        if self.is_unborn {
            return !processes::maps(self.pid, CHILD_BASE, self.generation.session.file())
                && processes::has_memory(self.pid);
        }
        let fd = self.generation.session.inject_args().session_fd;
        // One that is dying has closed it, too, but before that it has lost its memory.
        !processes::holds(self.pid, fd, self.generation.session.file()) && processes::has_memory(self.pid)
    }

    /// Ends the tracing of a running program. If it ends meanwhile, that is found like any other death.
    fn let_go(&self) {
        let thread = self.execing_thread();
        if trace::interrupt(thread).is_ok() {
            if let Ok(stop) = trace::wait_stop(thread) {
                let _ = trace::detach(thread, if stop.event == 0 { stop.signal } else { 0 });
            }
        }
    }

    /// A stop of the traced program on its way to the new image.
    pub(crate) fn on_trace_stop(&mut self, stop: Stop) -> Option<End> {
        const STOPPING: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
        match stop.event {
            libc::PTRACE_EVENT_EXEC => return self.on_exec(),
            // What fails here fails because the program was killed: its death follows.
            libc::PTRACE_EVENT_STOP if STOPPING.contains(&stop.signal) => {
                let _ = trace::listen(self.pid);
                self.follow_stop(stop.signal);
            }
            0 => drop(trace::resume(self.pid, stop.signal)),
            _ => drop(trace::resume(self.pid, 0)),
        }
        None
    }

    /// The program has become another one and has not yet run.
    fn on_exec(&mut self) -> Option<End> {
        let began = clock::monotonic();
        self.provide_fault_list();
        if self.is_unborn {
            // What was made for it is new.
            self.generation.renew_for_execve(self.pid);
            self.handover = Handover::Waiting { previous: None, began };
            return self.inject_into(0);
        }
        // What fails here fails because the program was killed: its death follows.
        let _ = trace::set_signal_mask(self.pid, self.generation.control().exec_mask.load(Acquire));
        let number = self.meta.generation + 1;
        match Generation::create(&self.folder, &self.stores, number) {
            Ok(new) => {
                // Whoever takes over from us must find it, from the moment on that it runs.
                new.note_birth(self.pid);
                new.session.take_children_of(&self.generation.session);
                if let Err(e) = new.session.take_filters_of(&self.generation.session) {
                    return self.leave_alone(number, Degradation::CallFilter, &e.to_string());
                }
                let previous = Some(Box::new(std::mem::replace(&mut self.generation, new)));
                self.handover = Handover::Waiting { previous, began };
                self.follow_signals();
                self.inject_into(number)
            }
            Err(e) => self.leave_alone(number, Degradation::StoreFull, &e.to_string()),
        }
    }

    /// Puts the engine into the new image, of which this generation is to be.
    fn inject_into(&mut self, number: u32) -> Option<End> {
        let faults = self.faults.as_ref();
        let children = self.kindred.as_deref();
        let (options, mode) = (&self.meta.options, mode::START);
        let injection = self.generation.injection(&self.engine, options, faults, mode, self.meta.pid, children);
        let own_proc = own_proc::needed_by(self.pid);
        let injection = Injection { own_proc: own_proc.as_ref().map(AsFd::as_fd), ..injection };
        let Err(failure) = inject(self.pid, None, &injection) else {
            self.end_keeping();
            self.anchor = 0;
            return None;
        };
        if let Handover::Waiting { previous: Some(previous), .. } = std::mem::take(&mut self.handover) {
            self.generation = *previous;
            self.forget_generation(number);
        }
        match failure {
            Failure::Refused(degradation, what, e) => {
                self.go_unprotected(degradation, &format!("{what}: {e}"));
                None
            }
            Failure::Fault(Fault::Gone(end)) => {
                self.kin.forget(self.pid);
                self.on_death(Some(end))
            }
            // Half injected: its death brings the program back to the commit before the execve.
            Failure::Fault(Fault::Kernel(..)) => {
                self.injection_faults += 1;
                self.kin.kill(self.pid);
                self.on_death(Some(End::Killed(libc::SIGKILL)))
            }
        }
    }

    /// The new image, in which there is no engine yet, runs without.
    fn leave_alone(&mut self, number: u32, why: Degradation, what: &str) -> Option<End> {
        self.forget_generation(number);
        self.go_unprotected(why, what);
        let _ = trace::detach(self.pid, 0);
        None
    }

    /// The new image runs without protection: the old one must not be recovered any more.
    pub(crate) fn go_unprotected(&mut self, degradation: Degradation, what: &str) {
        self.handover = Handover::None;
        self.is_unborn = false;
        self.dismiss_anchors();
        self.follow_nobody();
        let control = self.generation.control();
        control.state.store(state::SUSPENDED, Release);
        self.generation.degrade(degradation);
        self.log.add(&Entry::new(Kind::Suspended).cause(format!("{}: {what}", degradation.key())).pid(self.pid));
    }

    /// Ends the old generation once the new one can be recovered, or has said that it will not be.
    pub(crate) fn settle_handover(&mut self) {
        let young =
            self.generation.control().state.load(Acquire) == state::STARTING && !self.generation.session.has_commit();
        if young || !matches!(self.handover, Handover::Waiting { .. }) {
            return;
        }
        let Handover::Waiting { previous, began } = std::mem::take(&mut self.handover) else { return };
        self.is_unborn = false;
        self.meta.generation = self.generation.number;
        if let Some(previous) = previous {
            let control = previous.control();
            self.meta.commits_before += control.commits.load(Acquire);
            self.meta.recoveries_before += reports::recoveries(control);
            self.dismiss(&previous);
        }
        self.find_anchor();
        let took = Duration::from_nanos(clock::monotonic() - began);
        self.become_current();
        // They are of the program that it was.
        self.end_keeping();
        let _ = self.stores.archive().map(|archive| archive.clear());
        self.log.add(&Entry::new(Kind::Exec).cause(self.meta.exe.to_path().to_string_lossy()).took(took).pid(self.pid));
        self.decides.renewed();
        self.injection_faults = 0;
    }

    /// Describes the program that now runs, and gives the files of the new generation the names that count.
    pub(crate) fn become_current(&mut self) {
        if let Some(image) = processes::image_of(self.pid) {
            // From the kernel, and so free of NUL bytes.
            if let Ok(command) = Command::new(&image.exe, &image.argv) {
                self.command = command;
            }
            self.meta.exe = image.exe.into();
            self.meta.argv = image.argv.into_iter().map(Into::into).collect();
        }
        // Once the description says so whoever finds other names finishes this.
        let described = self.meta.write(&self.folder, &self.stores);
        let promoted = promote(&self.folder, &self.stores, self.generation.number);
        if let Err(e) = described.and(promoted) {
            self.log.add(&Entry::new(Kind::Degradation).cause(e.to_string()).pid(self.pid));
        }
    }

    /// Goes back to the generation before, if the program dies before the new one can be recovered.
    pub(crate) fn abandon_handover(&mut self) {
        self.settle_handover();
        let handover = std::mem::take(&mut self.handover);
        let control = self.generation.control();
        let asked = control.exec_request.load(Acquire) == request::EXEC;
        if asked && control.exec_ready.load(Acquire) == exec_answer::UNTRACED {
            // Whether its execve came before its death is not known: made again, it could repeat what was seen.
            control.state.store(state::SUSPENDED, Release);
            self.is_unborn = false;
        }
        if let Handover::Waiting { previous: Some(previous), .. } = handover {
            let failed = std::mem::replace(&mut self.generation, *previous);
            self.generation.session.take_children_of(&failed.session);
            self.dismiss(&failed);
            self.forget_generation(failed.number);
            self.generation.note_birth(self.pid);
            self.anchor = self.generation.control().anchor_pid.load(Acquire);
        }
        let control: &Control = self.generation.control();
        control.exec_request.store(request::NONE, Release);
        control.exec_ready.store(exec_answer::NONE, Release);
    }

    fn forget_generation(&self, number: u32) {
        self.folder.remove(&file_name("session", number));
        self.stores.remove(number);
    }
}

/// Answers an engine that waits to make its execve. False: it has given up waiting.
fn answer_to_execve(control: &Control, answer: u32) -> bool {
    let told = control.exec_ready.compare_exchange(exec_answer::NONE, answer, AcqRel, Acquire).is_ok();
    futex::wake(&control.exec_ready);
    told
}

/// Gives the files of the generation that counts the names that say so, as far as they have not got them: a supervisor may have died in the
/// middle of this.
pub fn promote(folder: &ProgramFolder, stores: &StorePlace, number: u32) -> Result<(), Error> {
    if number == 0 {
        return Ok(());
    }
    // The session last: as long as it has its own name it is known that there may be a store with its own.
    stores.promote(number)?;
    let young = file_name("session", number);
    match folder.has(&young) {
        true => folder.rename(&young, "session"),
        false => Ok(()),
    }
}
