//! A call as the service sees it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

use crate::buffer::Lent;
use crate::by_id::ById;
use crate::error::CallError;
use crate::layout::{ChannelMemory, CHANNELS, RECREATE, WORDS};
use crate::registry::Registry;
use crate::storage::{ResourceError, Resources};
use crate::word::Word;

use super::change::Change;
use super::kin::Kin;

/// Why a call is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The service says no.
    Errno(i32),
    /// The thread waits until the descriptor is woken (or the time has come), then the call is dispatched again.
    Wait { until: Option<Instant> },
    /// The request is malformed, or about what is not the client's.
    Refused(i32),
    /// A global descriptor that this instance does not know (G0).
    Unknown(u64),
    /// A client is to let go of what it has of a descriptor first.
    Holds { client: u32, descriptor: u64 },
}

impl From<i32> for Stop {
    fn from(errno: i32) -> Self {
        Self::Errno(errno)
    }
}

/// For a service that calls others: their clients are to make something of it.
impl From<CallError> for Stop {
    fn from(error: CallError) -> Self {
        Self::Errno(error.errno())
    }
}

impl From<ResourceError> for Stop {
    fn from(error: ResourceError) -> Self {
        Self::Errno(error.errno())
    }
}

/// A request, read once out of shared memory.
pub struct Incoming {
    pub client: u32,
    pub operation: u32,
    pub flags: u32,
    pub wanted: u64,
    pub words: [u64; WORDS],
    pub bytes: Vec<u8>,
    pub file: Option<OwnedFd>,
    /// Descriptors whose client cannot recover them.
    pub lost: Vec<u64>,
    /// Clients that were asked to let go of descriptors, and have, or are no more.
    pub released: Vec<(u32, u64)>,
}

/// A descriptor as the stub knows it, in this instance.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub client: u32,
    pub state: u32,
    /// Its client walks it to its state: nobody else may see it before it is there.
    pub recovering: bool,
}

pub type Knowns = ById<Known>;

pub struct Call<'a> {
    incoming: &'a Incoming,
    knowns: &'a Knowns,
    registry: &'a Registry,
    kin: &'a mut Kin,
    resources: &'a mut Resources,
    memory: &'a ChannelMemory,
    global: bool,
    pub(super) answers: [u64; WORDS],
    pub(super) answer_bytes: Vec<u8>,
    pub(super) answer_file: Option<Arc<OwnedFd>>,
    pub(super) changes: SmallVec<[Change; 2]>,
    pub(super) wakes: SmallVec<[u64; 4]>,
    /// What the call changes of resources outlives this instance.
    pub(super) keeps: bool,
    /// What the thread waits for if it has to.
    pub(super) waits_for: u64,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        incoming: &'a Incoming,
        knowns: &'a Knowns,
        registry: &'a Registry,
        kin: &'a mut Kin,
        resources: &'a mut Resources,
        memory: &'a ChannelMemory,
        global: bool,
    ) -> Self {
        Self {
            incoming,
            knowns,
            registry,
            kin,
            resources,
            memory,
            global,
            answers: [0; WORDS],
            answer_bytes: Vec::new(),
            answer_file: None,
            changes: SmallVec::new(),
            wakes: SmallVec::new(),
            keeps: false,
            waits_for: 0,
        }
    }

    pub fn operation(&self) -> u32 {
        self.incoming.operation
    }

    /// Which client calls: told by the channel, not by what it says of itself.
    pub fn client(&self) -> u32 {
        self.incoming.client
    }

    /// An argument; refused if its type has no such value.
    pub fn word<W: Word>(&self, at: usize) -> Result<W, Stop> {
        let word = self.incoming.words.get(at).copied().and_then(W::from_word);
        word.ok_or(Stop::Refused(libc::EINVAL))
    }

    /// All words that came with the call, 0 where none did.
    pub fn words(&self) -> &[u64; WORDS] {
        &self.incoming.words
    }

    pub fn bytes(&self) -> &'a [u8] {
        &self.incoming.bytes
    }

    /// The buffer of that number, which an argument names; the client has it back when this is dropped.
    pub fn lent(&self, number: u32) -> Result<Lent<'a>, Stop> {
        Lent::take(self.memory, number)
    }

    /// A client's stub creates a descriptor again that it had.
    pub fn recreates(&self) -> bool {
        self.incoming.flags & RECREATE != 0
    }

    /// An id for a new global descriptor; the one that it had where it is created again by the client that created it.
    pub fn global_id(&self) -> Result<u64, Stop> {
        if !self.recreates() {
            return Ok(self.registry.fresh());
        }
        match self.registry.find(self.incoming.wanted) {
            Some(noted) if noted.client == self.incoming.client => Ok(self.incoming.wanted),
            Some(_) => Err(Stop::Refused(libc::EPERM)),
            None => Err(Stop::Refused(libc::EBADF)),
        }
    }

    /// The descriptor is this client's to use: its own, or a global one.
    pub fn capability(&mut self, id: u64) -> Result<(), Stop> {
        self.waits_for = id;
        if self.incoming.lost.contains(&id) {
            return Err(Stop::Refused(libc::EOWNERDEAD));
        }
        match self.knowns.get(&id) {
            Some(known) if known.recovering && !self.recreates() => Err(Stop::Unknown(id)),
            Some(known) if self.global || known.client == self.incoming.client => Ok(()),
            Some(_) => Err(Stop::Refused(libc::EPERM)),
            None if self.global && self.registry.find(id).is_some() => Err(Stop::Unknown(id)),
            None => Err(Stop::Refused(libc::EBADF)),
        }
    }

    /// As `capability`, but a global descriptor that this instance does not know is refused: for stubs without G0.
    pub fn known(&mut self, id: u64) -> Result<(), Stop> {
        self.capability(id).map_err(|stop| match stop {
            Stop::Unknown(_) => Stop::Refused(libc::EBADF),
            stop => stop,
        })
    }

    /// D0: all that is below the descriptor is known, whoever made it; but for that of clients that are no more.
    pub fn subtree(&mut self, id: u64) -> Result<(), Stop> {
        let unknown = |id: &u64| self.knowns.get(id).is_none_or(|known| known.recovering);
        let below = self.kin.below(self.registry, id);
        if let Some(id) = below.iter().copied().find(|id| unknown(id) && !self.incoming.lost.contains(id)) {
            return Err(Stop::Unknown(id));
        }
        // In whose hands those are nobody can tell any more: it is asked of everybody.
        for lost in below.iter().filter(|id| self.incoming.lost.contains(id)) {
            (0..CHANNELS as u32).try_for_each(|client| self.release(client, *lost))?;
        }
        Ok(())
    }

    /// The client has nothing of the descriptor any more.
    pub fn release(&self, client: u32, descriptor: u64) -> Result<(), Stop> {
        match self.incoming.released.contains(&(client, descriptor)) {
            true => Ok(()),
            false => Err(Stop::Holds { client, descriptor }),
        }
    }

    /// G1: what this call leaves in resources is kept outside this process.
    pub fn keep(&mut self) {
        self.keeps = true;
    }

    /// Resources, as earlier instances left them.
    pub fn resources(&mut self) -> &mut Resources {
        self.resources.load();
        self.resources
    }

    pub fn state(&self, id: u64) -> Option<u32> {
        self.knowns.get(&id).map(|known| known.state)
    }

    /// The state that is on record for a descriptor that is being created again.
    pub fn recorded(&self, id: u64) -> Option<u32> {
        self.registry.find(id).map(|noted| noted.state)
    }

    pub fn answer(&mut self, at: usize, word: impl Word) {
        self.answers[at] = word.into_word();
    }

    /// An open file that came with the call.
    pub fn file(&self) -> Option<Arc<OwnedFd>> {
        self.incoming.file.as_ref().and_then(|file| file.try_clone().ok()).map(Arc::new)
    }

    /// The same, for as long as the call lasts.
    pub fn lent_file(&self) -> Option<BorrowedFd<'_>> {
        self.incoming.file.as_ref().map(AsFd::as_fd)
    }

    pub fn answer_file(&mut self, file: Arc<OwnedFd>) {
        self.answer_file = Some(file);
    }

    pub fn answer_bytes(&mut self, bytes: Vec<u8>) {
        self.answer_bytes = bytes;
    }

    pub fn created(&mut self, id: u64, state: u32, parent: u64) {
        self.changes.push(Change::Created { id, state, parent });
    }

    /// The call brings the descriptor to the operation's state.
    pub fn moved(&mut self, id: u64) {
        self.changes.push(Change::Moved { id, state: self.incoming.operation });
    }

    pub fn closed(&mut self, id: u64, subtree: bool) {
        self.changes.push(Change::Closed { id, subtree });
    }

    /// Threads that wait for the descriptor try again.
    pub fn wake(&mut self, id: u64) {
        self.wakes.push(id);
    }
}
