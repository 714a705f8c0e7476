//! Keeping older generations: a thread of the supervisor copies the store, as often as is wanted.

use crate::clock;
use crate::encryption;
use crate::error::Error;
use crate::exec::Handover;
use crate::futex;
use crate::log::{Entry, Kind, Log};
use crate::session::Session;
use crate::supervisor::Supervisor;
use outlast_archive::{Archive, ArchiveError, Hold, Policy, Writer};
use outlast_image::control::state;
use rustix::fs::fstatvfs;
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long folds are put off at a time.
const PUT_OFF: Duration = Duration::from_secs(5);
/// The file system of the store must have that much room beside what putting off takes.
const ROOM: u64 = 256 << 20;
/// Stack of the thread.
const STACK: usize = 1 << 20;

/// Whether generations are kept, and by whom.
#[derive(Default)]
pub enum Keeping {
    /// Nobody is at it.
    #[default]
    Idle,
    /// This thread, until `over` is 1.
    Busy { over: Arc<AtomicU32>, thread: JoinHandle<Archive> },
    /// Nobody is at it, and this is what there is.
    Paused(Archive),
    /// It was tried and cannot be.
    Impossible,
}

/// What the thread works with.
struct Keeper {
    archive: Archive,
    session: Arc<Session>,
    store: OwnedFd,
    every: Duration,
    log: Log,
    over: Arc<AtomicU32>,
}

impl Supervisor {
    /// Whether older generations were asked for.
    pub(crate) fn keeps_generations(&self) -> bool {
        self.meta.options.generations.is_some()
    }

    /// Starts the thread, if there is none.
    pub(crate) fn begin_keeping(&mut self) {
        let Some(policy) = self.meta.options.generations else { return };
        let is_settled = matches!(self.handover, Handover::None) && self.recovering.is_none();
        if !is_settled || matches!(self.keeping, Keeping::Busy { .. } | Keeping::Impossible) {
            return;
        }
        self.keeping = match self.start_keeper(policy) {
            Ok(keeping) => keeping,
            Err(e) => {
                self.note_not_kept(&e);
                Keeping::Impossible
            }
        };
    }

    fn start_keeper(&mut self, policy: Policy) -> Result<Keeping, Error> {
        let archive = match self.pause_keeping() {
            Some(archive) => archive,
            None => self.open_archive(policy)?,
        };
        let over = Arc::new(AtomicU32::new(0));
        let keeper = Keeper {
            archive,
            session: self.generation.session.clone(),
            store: self.generation.store.try_clone().map_err(|_| Error::Kernel("copy a descriptor", Errno::MFILE))?,
            every: Duration::from_nanos(policy.every_ns),
            log: Log::open(&self.folder, self.meta.options.journal.as_deref())?,
            over: over.clone(),
        };
        let thread = std::thread::Builder::new().name("keeper".into()).stack_size(STACK);
        let thread = thread.spawn(|| keeper.run());
        let thread = thread.map_err(|e| {
            Error::Kernel("start the thread that keeps generations", Errno::from_io_error(&e).unwrap_or(Errno::AGAIN))
        })?;
        Ok(Keeping::Busy { over, thread })
    }

    fn open_archive(&mut self, policy: Policy) -> Result<Archive, Error> {
        encryption::unlock(&mut self.stores, &mut self.meta, None)?;
        let archive = Archive::open(self.stores.archive()?, policy);
        let archive = archive.map_err(|error| Error::Generation(self.folder.name().into(), error))?;
        for number in archive.damaged() {
            let cause = ArchiveError::Damaged(*number).to_string();
            self.log.add(&Entry::new(Kind::NotKept).cause(cause).pid(self.pid));
        }
        Ok(archive)
    }

    /// Says in the log why there is no generation, or why it cannot be used.
    pub(crate) fn note_not_kept(&mut self, error: &Error) {
        let cause = match error {
            // Whoever reads the log knows which program it is.
            Error::Generation(_, error) => error.to_string(),
            error => error.to_string(),
        };
        self.log.add(&Entry::new(Kind::NotKept).cause(cause).pid(self.pid));
    }

    /// Stops the thread, and takes from it what is kept. None if nothing is.
    pub(crate) fn pause_keeping(&mut self) -> Option<Archive> {
        match std::mem::take(&mut self.keeping) {
            Keeping::Busy { over, thread } => {
                over.store(1, Release);
                futex::wake(&over);
                thread.join().ok()
            }
            Keeping::Paused(archive) => Some(archive),
            Keeping::Idle | Keeping::Impossible => None,
        }
    }

    /// What is kept, also where no thread was at it; nobody keeps any more until [`Supervisor::begin_keeping`]. None if none is wanted.
    pub(crate) fn take_archive(&mut self) -> Result<Option<Archive>, Error> {
        match (self.meta.options.generations, self.pause_keeping()) {
            (None, _) => Ok(None),
            (_, Some(archive)) => Ok(Some(archive)),
            (Some(policy), None) => self.open_archive(policy).map(Some),
        }
    }

    /// States are to be kept in another way from now on, or no more: then those that there are go as well.
    pub(crate) fn keep_otherwise(&mut self) {
        self.end_keeping();
        if !self.keeps_generations() {
            let _ = self.stores.archive().map(|archive| archive.clear());
        }
        self.begin_keeping();
    }

    /// Nobody keeps any more.
    pub(crate) fn end_keeping(&mut self) {
        drop(self.pause_keeping());
    }
}

impl Keeper {
    fn run(mut self) -> Archive {
        let (mut last, mut told) = (None, None);
        let mut next = Instant::now() + self.every;
        while !self.is_over() {
            let left = next.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                futex::wait(&self.over, 0, left);
                continue;
            }
            next = Instant::now() + self.every;
            let control = self.session.control();
            let seq = control.last_seq.load(Acquire);
            if last == Some(seq) || control.state.load(Acquire) != state::PROTECTED {
                continue;
            }
            let hold = PutOff { session: &self.session, store: &self.store, over: &self.over };
            match self.archive.keep(self.store.as_fd(), &Writer::Program(&hold)) {
                Ok(kept) => (last, told) = (Some(kept.seq), None),
                Err(ArchiveError::Cancelled) => (),
                Err(error) if told == Some(error) => (),
                Err(error) => {
                    self.log.add(&Entry::new(Kind::NotKept).cause(error.to_string()).seq(seq));
                    told = Some(error);
                }
            }
        }
        self.archive
    }

    fn is_over(&self) -> bool {
        self.over.load(Acquire) != 0
    }
}

/// Asks the engine of a program that runs.
pub struct PutOff<'a> {
    pub session: &'a Session,
    pub store: &'a OwnedFd,
    /// 1: the copy is to be given up.
    pub over: &'a AtomicU32,
}

impl Hold for PutOff<'_> {
    fn put_off(&self) {
        // What is not folded takes room, which the program's next commit may need.
        let has_room = fstatvfs(self.store).is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) > ROOM);
        if has_room {
            let until = clock::monotonic() + PUT_OFF.as_nanos() as u64;
            self.session.control().no_fold_until.fetch_max(until, AcqRel);
        }
    }

    fn release(&self) {
        // Somebody else who copies just now has to look once more.
        self.session.control().no_fold_until.store(0, Release);
    }

    fn is_over(&self) -> bool {
        self.over.load(Acquire) != 0
    }
}
