//! The manager: starts components, hands out channels to them, and starts a template again that died itself.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use displaydoc::Display;
use outlast_interfaces::proc::End;
use thiserror::Error;

use crate::channel::Channel;
use crate::keeping::{Happened, Keeper, Keeping};
use crate::layout::{ChannelMemory, Control, CHANNELS};
use crate::memory::Shared;
use crate::passage::Passage;
use crate::registry::Registry;
use crate::storage;

/// Names the descriptors that a template inherits: control, registry, doorbell, storage, what is not yet in its table, channels, sockets of the channels.
pub(crate) const DESCRIPTORS: &str = "OUTLAST_COMPONENT";
/// The first channel among them.
pub(crate) const FIRST: usize = 5;
/// The exit status of a template that has given its component up.
pub(crate) const GIVEN_UP: i32 = 75;
/// Deaths of a template without any longer life in between.
const TEMPLATES: u32 = 5;

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

pub(crate) struct Part {
    spec: Spec,
    /// What it may call, for every template.
    grants: Mutex<Vec<(String, Grant)>>,
    control: Shared<Control>,
    memory: Vec<OwnedFd>,
    /// The clients' ends of the sockets; one that was granted is no longer held here, so that its client's end is seen.
    sockets: Mutex<Vec<Option<OwnedFd>>>,
    granted: AtomicUsize,
    ending: AtomicBool,
    keeper: Mutex<Option<JoinHandle<()>>>,
    /// Who keeps the system, and the component's number there.
    kept: OnceLock<(Arc<Keeper>, u32)>,
}

/// A component that runs; clones are the same one.
#[derive(Clone)]
pub struct Handle {
    part: Arc<Part>,
}

/// The right to call a component, as one client: to be opened here, or to be given to a program.
pub struct Grant {
    memory: OwnedFd,
    doorbell: OwnedFd,
    socket: OwnedFd,
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
        let part = Arc::new(Part {
            spec,
            grants: Mutex::new(grants),
            control: mapped,
            memory,
            sockets: Mutex::new(sockets),
            granted: AtomicUsize::new(0),
            ending: AtomicBool::new(false),
            keeper: Mutex::new(None),
            kept: OnceLock::new(),
        });
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

impl Part {
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Where its template looks for a verdict.
    pub fn verdict(&self) -> &std::sync::atomic::AtomicU32 {
        &self.control.verdict
    }

    /// No template is to run any more.
    pub fn end(&self) {
        self.ending.store(true, SeqCst);
        let template = self.control.template.load(SeqCst);
        if template != 0 {
            // SAFETY: its number is forgotten before it is waited for.
            unsafe { libc::kill(template as libc::pid_t, libc::SIGKILL) };
        }
    }

    fn tell(&self, happened: Happened) {
        if let Some((keeper, number)) = self.kept.get() {
            keeper.tell(*number, happened);
        }
    }

    /// Has a template run until the end, or until it gives up.
    fn keep(&self, told: &std::sync::mpsc::Sender<io::Result<()>>) {
        let mut short = 0;
        while !self.ending.load(SeqCst) && short < TEMPLATES {
            let began = Instant::now();
            let spawned = self.spawn();
            let (mut child, alive) = match spawned {
                Ok(spawned) => spawned,
                Err(error) => {
                    let _ = told.send(Err(error));
                    break;
                }
            };
            let _ = told.send(Ok(()));
            // The number counts as the template's from here on: it is not waited for yet.
            self.control.template.store(child.id(), SeqCst);
            if self.ending.load(SeqCst) {
                let _ = child.kill();
            }
            // SAFETY: waits for our child but leaves it waitable, so that its number stays its own until it is forgotten.
            unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                while libc::waitid(libc::P_PID, child.id(), &mut info, libc::WEXITED | libc::WNOWAIT) < 0
                    && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
                {}
            }
            self.control.template.store(0, SeqCst);
            // Its instance dies with it, and the number may soon be another's.
            self.control.instance.store(0, SeqCst);
            let (process, status) = (child.id() as i32, child.wait());
            // The next template must not begin before: wait for the last end of the pipe.
            let _ = io::Read::read(&mut std::fs::File::from(alive), &mut [0]);
            // One that had just begun may have said so after that.
            self.control.instance.store(0, SeqCst);
            let status = status.ok();
            if status.is_some_and(|status| status.code() == Some(GIVEN_UP)) {
                break;
            }
            if !self.ending.load(SeqCst) {
                let exited = |status: ExitStatus| status.code().map(End::Exited);
                let end = status.and_then(|status| exited(status).or(status.signal().map(End::Killed)));
                self.tell(Happened::TemplateDied(process, end));
            }
            short = if began.elapsed() < Duration::from_secs(1) { short + 1 } else { 0 };
            if short == TEMPLATES {
                self.tell(Happened::GivenUp(format!("the process it is forked from died {TEMPLATES} times at once")));
            }
        }
        // Nobody will answer for it any more: others see that by its ends being gone.
        self.grants.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.control.given_up.store(1, SeqCst);
        for memory in &self.memory[FIRST..FIRST + CHANNELS] {
            if let Ok(channel) = Shared::<ChannelMemory>::map(memory.as_fd()) {
                channel.given_up.store(1, SeqCst);
                for slot in &channel.slots {
                    crate::futex::wake(&slot.state);
                }
            }
        }
    }

    /// The child, and a pipe that ends with it and all of its instances.
    fn spawn(&self) -> io::Result<(std::process::Child, OwnedFd)> {
        let (alive, held) = pipe()?;
        let mut numbers: Vec<RawFd> = self.memory.iter().map(AsRawFd::as_raw_fd).collect();
        let list: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        numbers.push(held.as_raw_fd());
        let mut command = Command::new(&self.spec.program);
        command.args(&self.spec.arguments).env(DESCRIPTORS, list.join(","));
        if let Some((keeper, number)) = self.kept.get() {
            numbers.push(keeper.pass(&mut command, *number));
        }
        for (name, grant) in self.grants.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            grant.again()?.pass(&mut command, name);
        }
        let parent = std::process::id() as libc::pid_t;
        // SAFETY: between fork and exec only system calls are made.
        unsafe {
            command.pre_exec(move || {
                for number in &numbers {
                    libc::fcntl(*number, libc::F_SETFD, 0);
                }
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                match libc::getppid() == parent {
                    true => Ok(()),
                    false => Err(io::ErrorKind::BrokenPipe.into()),
                }
            });
        }
        Ok((command.spawn()?, alive))
    }
}

/// The end that reads, and the end that writes.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: fills a live array; what it fills in is new and ours.
    unsafe {
        match libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) {
            0 => Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))),
            _ => Err(io::Error::last_os_error()),
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

impl Grant {
    pub fn open(self) -> io::Result<Channel> {
        Channel::open(self.memory, self.doorbell, self.socket)
    }

    /// The same right once more, for whoever comes after its client when that is dead: who opens it then finds nothing open, and nothing
    /// that was asked for happens any more.
    pub fn again(&self) -> io::Result<Self> {
        let [memory, doorbell, socket] = [&self.memory, &self.doorbell, &self.socket].map(OwnedFd::try_clone);
        Ok(Self { memory: memory?, doorbell: doorbell?, socket: socket? })
    }

    /// Gives the right to a program that is about to be started, which opens it by `Grant::inherited(name)`.
    pub fn pass(self, command: &mut Command, name: &str) {
        let numbers = [&self.memory, &self.doorbell, &self.socket].map(|fd| fd.as_raw_fd().to_string());
        command.env(format!("OUTLAST_GRANT_{name}"), numbers.join(","));
        // SAFETY: between fork and exec only system calls are made; the grant lives in the closure.
        unsafe {
            command.pre_exec(move || {
                for fd in [&self.memory, &self.doorbell, &self.socket] {
                    libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0);
                }
                Ok(())
            });
        }
    }

    /// What this program was given under that name.
    pub fn inherited(name: &str) -> io::Result<Self> {
        let missing = || io::Error::new(io::ErrorKind::PermissionDenied, format!("no channel to `{name}` was granted"));
        let list = std::env::var(format!("OUTLAST_GRANT_{name}")).map_err(|_| missing())?;
        let [memory, doorbell, socket] = list.split(',').collect::<Vec<_>>().try_into().map_err(|_| missing())?;
        let open = |number: &str| {
            let number: RawFd = number.parse().map_err(|_| missing())?;
            // SAFETY: the number was passed for this; a copy is made, so that nothing of others is closed.
            unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()
        };
        Ok(Self { memory: open(memory)?, doorbell: open(doorbell)?, socket: open(socket)? })
    }
}
