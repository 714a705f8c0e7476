//! Deaths: what is told of one, and what is done about it.

use crate::clock;
use crate::decision::{Cause, Death, Decision, Respawn, Shortage, Standing};
use crate::end::End;
use crate::forward::GATE_SIGNAL;
use crate::log::{Entry, Kind};
use crate::names;
use crate::postponed::Postponed;
use crate::say::say;
use crate::supervisor::Supervisor;
use crate::{again, unreadable};
use outlast_image::control::state;
use outlast_interfaces::proc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

impl From<End> for proc::End {
    fn from(end: End) -> Self {
        match end {
            End::Exited(status) => Self::Exited(status),
            End::Killed(signal) => Self::Killed(signal),
        }
    }
}

impl From<proc::End> for End {
    fn from(end: proc::End) -> Self {
        match end {
            proc::End::Exited(status) => Self::Exited(status),
            proc::End::Killed(signal) => Self::Killed(signal),
        }
    }
}

impl Supervisor {
    /// Has it decided what a death means, and does that; or returns how the program ended.
    pub(crate) fn on_death(&mut self, end: Option<End>) -> Option<End> {
        let died = clock::monotonic();
        self.beware_of_modules();
        self.on_restored();
        self.abandon_handover();
        let control = self.generation.control();
        // The kernel does not tell strangers how a process ended: only what the engine said before is known.
        let end = end.unwrap_or(match control.state.load(Acquire) {
            state::EXITING => End::Exited(control.exit_code.load(Acquire) & 0xff),
            _ => End::Killed(libc::SIGKILL),
        });
        self.is_killed |= end == End::Killed(libc::SIGKILL) && self.is_meant();
        if self.is_unborn {
            return Some(end);
        }
        let death = self.death(end);
        again::note_end(Some(end));
        let decision = self.decides.died(&death);
        again::note_end(None);
        self.log_failures();
        let shortage = self.shortage.take();
        match decision {
            Some(Decision::End(end)) => {
                if death.standing == Standing::GivenUp && !death.stopping {
                    self.say_given_up("it meets the same fatal signal again and again");
                }
                Some(end.into())
            }
            Some(Decision::Respawn(Respawn { signal, after })) if after.is_zero() => self.recover(signal, died),
            Some(Decision::Respawn(Respawn { signal, after })) => {
                self.postponed = Some(Postponed::until(after, signal, died));
                None
            }
            // A fresh process would have our environment, which is not the one that the program was started with.
            Some(Decision::StartAgain(_)) if self.adopted => Some(end),
            Some(Decision::StartAgain(signal)) => self.start_again(signal, died),
            Some(Decision::GoBack(Cause::Signal(signal))) => {
                self.go_further_back(&names::signal(signal), Cause::Signal(signal), End::Killed(signal))
            }
            Some(Decision::GoBack(Cause::Unreadable(reason))) => {
                self.kept = true;
                self.go_further_back(
                    &unreadable::sentence(reason, self.generation.control()),
                    Cause::Unreadable(reason),
                    end,
                )
            }
            Some(Decision::GiveUp(Cause::Signal(signal))) => {
                let resuming = self.recovering.as_ref().is_some_and(|r| r.kind == Kind::Resumed);
                // With more memory it can be resumed.
                self.kept |= resuming || shortage.is_some() || death.by_engine || death.hung.is_some();
                let what = match shortage {
                    Some(shortage) => format!("lack of memory ({shortage})"),
                    None if death.by_engine => "an error of the engine".into(),
                    None if death.hung.is_some() => "a hang".into(),
                    None => names::signal(signal),
                };
                Some(self.give_up(&format!("{what} again and again"), End::Killed(signal)))
            }
            Some(Decision::GiveUp(Cause::Unreadable(reason))) => {
                self.kept = true;
                Some(self.give_up(&unreadable::sentence(reason, self.generation.control()), end))
            }
            Some(Decision::GoBackTo(_) | Decision::AskAgain(_)) | None => Some(self.leave_undecided(&death, end)),
        }
    }

    /// What there is to be told of a death.
    fn death(&mut self, end: End) -> Death {
        let control = self.generation.control();
        self.committed |= control.commits.load(Acquire) > 0;
        let standing = match control.state.load(Acquire) {
            state::EXITING => Standing::Exiting(control.exit_code.load(Acquire)),
            state::SUSPENDED => Standing::Suspended,
            state::GIVEN_UP => Standing::GivenUp,
            _ => Standing::Protected,
        };
        Death {
            end: end.into(),
            by_call: end == End::Killed(GATE_SIGNAL),
            by_engine: end == End::Killed(libc::SIGKILL) && control.error_line.swap(0, AcqRel) != 0,
            standing,
            has_commit: self.committed,
            seq: control.last_seq.load(Acquire),
            stopping: control.stopping.load(Acquire) != 0 || self.is_killed,
            restored: control.restored.load(Acquire),
            unreadable: Some(control.unreadable.load(Acquire)).filter(|reason| *reason != 0),
            shortage: self.shortage.as_ref().map(|shortage| Shortage { limit: shortage.bytes() }),
            has_older: self.keeps_generations(),
            hung: self.looking.take().filter(|_| end == End::Killed(libc::SIGKILL)),
        }
    }

    /// Without anybody who decides, what may not have been the program's own end is left as it is, for a person to resume.
    fn leave_undecided(&mut self, death: &Death, end: End) -> End {
        let was_protected = death.standing == Standing::Protected && death.has_commit && !death.stopping;
        if matches!(end, End::Exited(_)) || !was_protected {
            return end;
        }
        self.kept = true;
        self.give_up(&format!("{}, and no module decides about it; it can be resumed", end.words()), end)
    }

    /// The top of the ladder: says so, and lets the end be the program's.
    pub(crate) fn give_up(&mut self, cause: &str, end: End) -> End {
        if !self.kept {
            self.generation.control().state.store(state::GIVEN_UP, Release);
        }
        self.log.add(&Entry::new(Kind::GaveUp).cause(cause).rung(7).pid(self.pid));
        self.say_given_up(cause);
        end
    }

    fn say_given_up(&self, cause: &str) {
        let (command, name) = (self.command.name(), self.folder.name());
        say(format_args!("{command} is not recovered any more: {cause}; see `outlast log {name}`"));
    }

    /// Says in the log which modules failed, and what modules say.
    pub(crate) fn log_failures(&mut self) {
        for what in self.decides.said() {
            self.log.add(&Entry::new(Kind::ModuleSaid).cause(what).pid(self.pid));
        }
        let failures = self.decides.failures();
        if !failures.is_empty() {
            self.tell_parts();
        }
        for failure in failures {
            self.log.add(&Entry::new(Kind::ModuleFailed).cause(failure).pid(self.pid));
        }
    }
}
