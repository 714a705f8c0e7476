//! Rung 6, and `outlast rewind`: the program goes on from an older generation. Not invisible: what it sent since stays sent,
//! what it read since is not read again, and files that it wrote to stay as they are.

use crate::clock;
use crate::decision::{Cause, Step, Stuck, Surroundings};
use crate::end::End;
use crate::error::Error;
use crate::exec::Handover;
use crate::futex;
use crate::generations::age;
use crate::keeping::Keeping;
use crate::log::{Entry, Kind};
use crate::options::Options;
use crate::past::Past;
use crate::progress::{half, Bar};
use crate::respawn::Recovering;
use crate::say::say;
use crate::supervisor::Supervisor;
use outlast_archive::{Archive, ArchiveError, Generation, Kept, Place, Target};
use outlast_image::control::{go_back, other_state, perturbation, state, went_back, Control};
use outlast_image::inject::option;
use outlast_image::journal;
use outlast_store::{Params, PlainFile, Store, SCRATCH_LEN};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::Duration;

/// The numbers of commits, notes and completions of the dead must mean nothing to a program that went back.
const APART: u64 = 16;

/// Surroundings as the engine knows them, and in words.
fn surroundings(surroundings: Surroundings) -> (u32, &'static str) {
    match surroundings {
        Surroundings::Same => (0, ""),
        Surroundings::Room => (perturbation::ROOM, ", with room between new mappings"),
        Surroundings::RoomAndDelays => {
            (perturbation::ROOM | perturbation::DELAYS, ", with room between new mappings, and calls delayed")
        }
    }
}

impl Supervisor {
    /// The same failure again and again: goes back to an older generation, or gives up.
    pub(crate) fn go_further_back(&mut self, cause: &str, why: Cause, end: End) -> Option<End> {
        let died = clock::monotonic();
        // What the engine had said comes first in the log.
        self.drain_events();
        let instruction = self.generation.control().fault_rip.load(Acquire);
        let mut has_tried = false;
        let mut archive = match self.take_archive() {
            Ok(Some(archive)) => archive,
            Ok(None) => return Some(self.give_up(cause, end)),
            Err(error) => return Some(self.give_up_for_now(cause, &error, end)),
        };
        loop {
            let kept: Vec<u64> = archive.kept().iter().map(|kept| kept.number).collect();
            let is_empty = kept.is_empty();
            let step = self.decides.stuck(&Stuck { cause: why, instruction, kept });
            self.log_failures();
            let Some(Step { generation: number, surroundings: wanted, again }) = step else {
                let cause = match is_empty && !has_tried {
                    true => format!("{cause} again and again, and no older generation is kept"),
                    false => {
                        format!("{cause} again and again, also from all older generations and in other surroundings")
                    }
                };
                return Some(self.give_up(&cause, end));
            };
            has_tried = true;
            let (perturbation, otherwise) = surroundings(wanted);
            match self.verify(&archive, number).and_then(|()| self.become_generation(&mut archive, number, again)) {
                Ok((kept, past)) => {
                    self.keeping = Keeping::Paused(archive);
                    self.kept = false;
                    let what = format!("{}{otherwise}{}", describe(&kept), met_again(past));
                    self.generation.control().perturbation.store(perturbation, Release);
                    let (command, name) = (self.command.name(), self.folder.name());
                    say(format_args!(
                        "{command} met {cause} again and again; it goes on from {what}; see `outlast log {name}`"
                    ));
                    return self.bring_back(format!("{what} after {cause}"), died);
                }
                Err(error) => self.log.add(&Entry::new(Kind::NotKept).cause(error.to_string()).pid(self.pid)),
            }
        }
    }

    /// Older generations cannot be used as things are, for lack of their key above all: everything of the program stays, so that
    /// it can be resumed once they can.
    fn give_up_for_now(&mut self, cause: &str, error: &Error, end: End) -> End {
        self.note_not_kept(error);
        self.kept = true;
        self.generation.control().state.store(state::PROTECTED, Release);
        self.give_up(&format!("{cause} again and again, and it cannot go further back: {error}"), end)
    }

    /// Serves `outlast rewind`.
    pub(crate) fn on_wish_to_go_back(&mut self) -> Option<End> {
        let control = self.generation.control();
        // What is on its way comes first: its end rings.
        let is_settled = matches!(self.handover, Handover::None) && self.recovering.is_none();
        if control.go_back.load(Acquire) != go_back::ASKED || !is_settled {
            return None;
        }
        let (outcome, end) = self.go_back_as_wished(control.go_back_to.load(Acquire));
        let control = self.generation.control();
        control.went_back.store(outcome, Release);
        let _ = control.go_back.compare_exchange(go_back::ASKED, go_back::NONE, AcqRel, Acquire);
        futex::wake(&control.go_back);
        end
    }

    fn go_back_as_wished(&mut self, number: u64) -> (u32, Option<End>) {
        let began = clock::monotonic();
        let control = self.generation.control();
        control.progress.store(0, Release);
        if control.state.load(Acquire) != state::PROTECTED || !self.kin.has(self.pid) {
            return (went_back::NOT_NOW, None);
        }
        let mut archive = match self.take_archive() {
            Ok(Some(archive)) => archive,
            Ok(None) => return (went_back::MISSING, None),
            Err(error) => {
                self.note_not_kept(&error);
                return (went_back::NO_KEY, None);
            }
        };
        if let Err(error) = self.verify(&archive, number) {
            self.keeping = Keeping::Paused(archive);
            let missing = matches!(error, ArchiveError::Missing(_));
            return (if missing { went_back::MISSING } else { went_back::DAMAGED }, None);
        }
        // What it may do is asked while it still lives.
        self.look_at_credentials();
        self.generation.control().perturbation.store(0, Release);
        self.kin.kill(self.pid);
        self.drain_events();
        let became = self.become_generation(&mut archive, number, false);
        self.keeping = Keeping::Paused(archive);
        let end = match became {
            Ok((kept, _)) => self.bring_back(describe(&kept), began),
            Err(error) => {
                self.kept = true;
                let cause = format!("generation {number} could not be put into its store ({error})");
                Some(self.give_up(&cause, End::Killed(libc::SIGKILL)))
            }
        };
        (if end.is_none() { went_back::DONE } else { went_back::FAILED }, end)
    }

    fn verify(&self, archive: &Archive, number: u64) -> Result<(), ArchiveError> {
        archive.generation(number)?.telling(&|done, all| self.tell(half(0, done, all))).verify()
    }

    /// Says how far it is, to whoever waits for it.
    fn tell(&self, part: u64) {
        self.generation.control().progress.store(part as u32, Release);
        self.bar.at(part);
    }

    /// Makes the store of the dead program hold a generation, which has been verified, and gives up those after it. `again`: what it
    /// read since is given to it again, if all of that is kept, and what it sent since is not sent again.
    fn become_generation(
        &mut self,
        archive: &mut Archive,
        number: u64,
        again: bool,
    ) -> Result<(Kept, Option<Past>), ArchiveError> {
        let kept = archive.kept().iter().find(|kept| kept.number == number).copied();
        let kept = kept.ok_or(ArchiveError::Missing(number))?;
        let seq = Generation::read(archive.place(), number)?.seq();
        let past = if again { Past::since(&self.generation.session, seq) } else { None };
        self.meta.going_back = Some(number);
        let _ = self.meta.write(&self.folder, &self.stores);
        // Whoever finishes this in our place gives it nothing of that.
        Past::withhold(&self.generation.session);
        let control = self.generation.control();
        let last = control.last_seq.load(Acquire);
        let made_for = (&self.meta.options, self.meta.generation);
        let tell = |done, all| self.tell(half(1, done, all));
        replace(self.generation.store.try_clone()?, archive.place(), number, last, made_for, &tell)?;
        archive.give_up_after(number);
        if let Some(past) = past {
            past.give(&self.generation.session, clock::monotonic())?;
        }
        forget(control);
        control.other_state.store(other_state::OLDER, Release);
        control.state.store(state::STARTING, Release);
        self.generation.session.clear_signals_in_hand();
        self.meta.going_back = None;
        let _ = self.meta.write(&self.folder, &self.stores);
        self.decides.renewed();
        Ok((kept, past))
    }

    /// Finishes what a supervisor had begun that died: until then the store holds nothing.
    pub(crate) fn finish_going_back(&mut self) -> Result<(), Error> {
        let Some(number) = self.meta.going_back else { return Ok(()) };
        self.go_back_at_rest(number)?;
        self.log.add(&Entry::new(Kind::WentBack).cause(format!("generation {number}")).rung(6));
        let control = self.generation.control();
        control.went_back.store(went_back::DONE, Release);
        control.go_back.store(go_back::NONE, Release);
        futex::wake(&control.go_back);
        Ok(())
    }

    /// Makes the store of a program of which nothing runs hold a generation.
    pub(crate) fn go_back_at_rest(&mut self, number: u64) -> Result<(), Error> {
        let name = self.folder.name().to_string();
        let mut archive = self.take_archive()?.ok_or_else(|| Error::NoGenerations(name.clone()))?;
        let verified = self.verify(&archive, number);
        let became = verified.and_then(|()| self.become_generation(&mut archive, number, false));
        self.keeping = Keeping::Paused(archive);
        self.bar = Bar::none();
        became.map(drop).map_err(|error| Error::Generation(name, error))
    }

    /// A process for the state that the store now holds.
    fn bring_back(&mut self, what: String, died: u64) -> Option<End> {
        let control = self.generation.control();
        control.t_death.store(died, Release);
        let (restored, seq) = (control.restored.load(Acquire), control.last_seq.load(Acquire));
        match self.respawn() {
            Ok(pid) => {
                self.pid = pid;
                self.generation.control().program_pid.store(pid, Release);
                self.follow();
                let (kind, phase) = (Kind::WentBack, u32::MAX);
                self.recovering = Some(Recovering { kind, rung: 6, cause: what, died, seq, phase, restored });
                None
            }
            Err(_) => {
                let end = self.cold_resume(&what, died);
                if let Some(recovering) = &mut self.recovering {
                    (recovering.kind, recovering.rung) = (Kind::WentBack, 6);
                }
                end
            }
        }
    }
}

/// What the dead left in the session that a successor would take for its own.
fn forget(control: &Control) {
    control.birth.store(0, Release);
    control.missed.store(0, Release);
    control.sent.store(0, Release);
    control.unreadable.store(0, Release);
    for word in [&control.fault_signal, &control.fault_repeats] {
        word.store(0, Release);
    }
}

/// What it meets again, in words.
fn met_again(past: Option<Past>) -> String {
    past.map_or_else(String::new, |Past { inputs, sent, .. }| {
        let plural = if inputs == 1 { "" } else { "s" };
        format!(", and gets what it has read since ({inputs} read{plural}) once more; {sent} bytes that it sent are compared")
    })
}

/// A generation in words.
fn describe(kept: &Kept) -> String {
    format!(
        "generation {} of {} before",
        kept.number,
        humantime::format_duration(Duration::from_secs(age(kept).as_secs()))
    )
}

/// Makes a store that nobody uses hold a generation. What is to be undone of the dead's files and descriptors stays to be
/// undone; `last` is the number of its last commit, as far as that is known.
pub(crate) fn replace(
    store: OwnedFd,
    place: &Place,
    number: u64,
    last: u64,
    (options, image): (&Options, u32),
    tell: &dyn Fn(u64, u64),
) -> Result<(), ArchiveError> {
    let mut scratch = vec![0; SCRATCH_LEN as usize];
    let (mut seq, mut undo) = (last, Vec::new());
    if let Ok((mut store, _)) = Store::peek(PlainFile::new(store.try_clone()?)?, &mut scratch) {
        seq = seq.max(store.seq());
        store.journal_for_each(&mut |_, kind, bytes| {
            // What it read and what signals it took are not for the state before. Entries name others by their places.
            let is_given_up = matches!(kind, journal::INPUT | journal::SIGNAL);
            undo.push((if is_given_up { journal::NOTHING } else { kind }, bytes.to_vec()));
        });
    }
    let mut generation = Generation::read(place, number)?.telling(tell);
    let base_seq = seq.max(generation.seq()) + APART;
    let durable = options.bits & option::DURABLE != 0;
    let lags = durable && options.lag_ns != 0;
    let (ring_len, id) = (options.ring_len, new_id()?);
    let params = Params { ring_len, durable, lags, id, generation: image, base_seq, ..Params::default() };
    generation.write_to(Target { file: store, params, journal: undo })
}

/// The random id of a new store.
fn new_id() -> Result<[u8; 16], ArchiveError> {
    let mut id = [0; 16];
    rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty())?;
    Ok(id)
}
