//! The manager: starts components, hands out channels to them, and starts a template again that died itself.

mod grant;
mod part;

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use displaydoc::Display;
use thiserror::Error;

use crate::keeping::{Happened, Keeper, Keeping};
use crate::layout::{ChannelMemory, Control, CHANNELS};
use crate::memory::Shared;
use crate::passage::Passage;
use crate::registry::Registry;
use crate::storage;

pub use grant::Grant;
pub(crate) use part::Part;

/// Names the descriptors that a template inherits: control, registry, doorbell, storage, what is not yet in its table, channels, sockets of the channels.
pub(crate) const DESCRIPTORS: &str = "OUTLAST_COMPONENT";
/// The first channel among them.
pub(crate) const FIRST: usize = 5;
/// The exit status of a template that has given its component up.
pub(crate) const GIVEN_UP: i32 = 75;

#[derive(Debug, Display, Error)]
pub enum SystemError {
    /// cannot start the component `{0}`: {1}; look whether the program is there and executable
    Start(String, io::Error),
    /// the component `{0}` did not come up within {1:?}: run its program alone to see what it says
    NotUp(String, Duration),
    /// a module that is to decide about components cannot be loaded: {0}
    Module(String),
    /// a module has ended the system: {0}
    Ended(String),
    /// the component `{0}` has no channel left: at most 16 clients can have one
    NoChannel(String),
    /// cannot share memory: {0}
    Memory(#[from] io::Error),
}

/// What a component is started from.
#[derive(Clone, Debug)]
pub struct Spec {
    pub name: String,
    pub program: PathBuf,
    pub arguments: Vec<String>,
}

/// Components, for as long as this lives.
#[derive(Default)]
pub struct System {
    components: Vec<Arc<Part>>,
    keeper: Option<Arc<Keeper>>,
}

/// A component that runs; clones are the same one.
#[derive(Clone)]
pub struct Handle {
    part: Arc<Part>,
}

impl System {
    pub fn new() -> Self {
        Self::default()
    }

    /// One whose components' deaths modules decide about, and somebody is told of.
    pub fn kept(keeping: Keeping) -> Result<Self, SystemError> {
        Ok(Self { components: Vec::new(), keeper: Some(Arc::new(Keeper::start(keeping)?)) })
    }

    /// Why a module has ended it, if one has: all components are given up then.
    pub fn ended(&self) -> Option<String> {
        self.keeper.as_ref().and_then(|keeper| keeper.ended())
    }

    /// Starts a component and returns when it takes calls.
    pub fn start(&mut self, spec: Spec) -> Result<Handle, SystemError> {
        self.start_with(spec, Vec::new())
    }

    /// The same for one that calls others. Each of its instances opens the grants anew, by `Grant::inherited`, when it is born
    /// (`Component::born`).
    pub fn start_with(&mut self, spec: Spec, grants: Vec<(String, Grant)>) -> Result<Handle, SystemError> {
        if let Some(why) = self.ended() {
            return Err(SystemError::Ended(why));
        }
        let control = Shared::<Control>::create(c"component-control")?;
        let registry = Shared::<Registry>::create(c"component-registry")?;
        // SAFETY: a plain call; the descriptor is new and ours.
        let doorbell = unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error().into());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let mapped = Shared::map(control.as_fd())?;
        let recent = Shared::<storage::Area>::create(c"component-recent")?;
        let mut memory = vec![control, registry, doorbell, storage::create()?, recent];
        for _ in 0..CHANNELS {
            memory.push(Shared::<ChannelMemory>::create(c"component-channel")?);
        }
        let mut sockets = Vec::new();
        for _ in 0..CHANNELS {
            let [theirs, ours] = Passage::pair()?;
            sockets.push(Some(theirs));
            memory.push(ours);
        }
        let part = Arc::new(Part::new(spec, grants, mapped, memory, sockets));
        if let Some(keeper) = &self.keeper {
            let number = keeper.add(Arc::downgrade(&part));
            let _ = part.kept.set((keeper.clone(), number));
            let words = std::iter::once(part.spec.program.to_string_lossy().into_owned());
            let words: Vec<String> = words.chain(part.spec.arguments.iter().cloned()).collect();
            part.tell(Happened::Begun(words.join(" ")));
        }
        let (told, ready) = std::sync::mpsc::channel();
        let kept = part.clone();
        // One thread spawns and waits: a template dies with the thread that spawned it.
        let keeper = std::thread::spawn(move || kept.keep(&told));
        *part.keeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(keeper);
        self.components.push(part.clone());
        if let Ok(Err(error)) = ready.recv() {
            return Err(SystemError::Start(part.spec.name.clone(), error));
        }
        let limit = Duration::from_secs(30);
        let start = Instant::now();
        while part.control.reboot_nanoseconds.load(Acquire) == 0 {
            if start.elapsed() > limit || part.control.given_up.load(Acquire) != 0 {
                return Err(SystemError::NotUp(part.spec.name.clone(), limit));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(Handle { part })
    }
}

impl Drop for System {
    fn drop(&mut self) {
        for part in &self.components {
            if !part.ending.load(SeqCst) && part.control.given_up.load(SeqCst) == 0 {
                let [descriptors, recovered] =
                    [&part.control.descriptors, &part.control.recovered].map(|count| count.load(SeqCst));
                part.tell(Happened::Ended { descriptors, recovered });
            }
            part.end();
            if let Some(keeper) = part.keeper.lock().unwrap_or_else(PoisonError::into_inner).take() {
                let _ = keeper.join();
            }
        }
        if let Some(keeper) = &self.keeper {
            keeper.end();
        }
    }
}

impl Handle {
    /// A channel that no other client has.
    pub fn grant(&self) -> Result<Grant, SystemError> {
        let at = self.part.granted.fetch_add(1, SeqCst);
        let mut sockets = self.part.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(socket) = sockets.get_mut(at).and_then(Option::take) else {
            return Err(SystemError::NoChannel(self.part.spec.name.clone()));
        };
        let memory = self.part.memory[FIRST + at].try_clone()?;
        Ok(Grant { memory, doorbell: self.part.memory[2].try_clone()?, socket })
    }

    /// The process that serves now; 0 while there is none.
    pub fn instance(&self) -> u32 {
        self.part.control.instance.load(Acquire)
    }

    /// The process that its instances are forked from; 0 while there is none.
    pub fn template(&self) -> u32 {
        self.part.control.template.load(Acquire)
    }

    /// How often an instance has died, of whatever; and how often it was ended because it hung.
    pub fn deaths(&self) -> (u32, u32) {
        (self.part.control.deaths.load(Acquire), self.part.control.hangs.load(Acquire))
    }

    /// The last micro-reboot: from the notice of the death until calls were taken again.
    pub fn last_reboot(&self) -> Duration {
        Duration::from_nanos(self.part.control.reboot_nanoseconds.load(Acquire))
    }

    /// How many descriptors of its clients it knows now.
    pub fn descriptors(&self) -> u32 {
        self.part.control.descriptors.load(Acquire)
    }

    /// So many of them were brought back from the instance before it.
    pub fn recovered(&self) -> u32 {
        self.part.control.recovered.load(Acquire)
    }

    pub fn given_up(&self) -> bool {
        self.part.control.given_up.load(Acquire) != 0
    }
}
