//! A component of a system: its memory, and the thread that has a template of it run.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use outlast_interfaces::proc::End;

use super::{Grant, Spec, DESCRIPTORS, FIRST, GIVEN_UP};
use crate::keeping::{Happened, Keeper};
use crate::layout::{ChannelMemory, Control, CHANNELS};
use crate::memory::Shared;

/// Deaths of a template without any longer life in between.
const TEMPLATES: u32 = 5;

pub(crate) struct Part {
    pub(super) spec: Spec,
    /// What it may call, for every template.
    grants: Mutex<Vec<(String, Grant)>>,
    pub(super) control: Shared<Control>,
    pub(super) memory: Vec<OwnedFd>,
    /// The clients' ends of the sockets; one that was granted is no longer held here, so that its client's end is seen.
    pub(super) sockets: Mutex<Vec<Option<OwnedFd>>>,
    pub(super) granted: AtomicUsize,
    pub(super) ending: AtomicBool,
    pub(super) keeper: Mutex<Option<JoinHandle<()>>>,
    /// Who keeps the system, and the component's number there.
    pub(super) kept: OnceLock<(Arc<Keeper>, u32)>,
}

impl Part {
    pub fn new(
        spec: Spec,
        grants: Vec<(String, Grant)>,
        control: Shared<Control>,
        memory: Vec<OwnedFd>,
        sockets: Vec<Option<OwnedFd>>,
    ) -> Self {
        Self {
            spec,
            grants: Mutex::new(grants),
            control,
            memory,
            sockets: Mutex::new(sockets),
            granted: AtomicUsize::new(0),
            ending: AtomicBool::new(false),
            keeper: Mutex::new(None),
            kept: OnceLock::new(),
        }
    }

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

    pub(super) fn tell(&self, happened: Happened) {
        if let Some((keeper, number)) = self.kept.get() {
            keeper.tell(*number, happened);
        }
    }

    /// Has a template run until the end, or until it gives up.
    pub(super) fn keep(&self, told: &std::sync::mpsc::Sender<io::Result<()>>) {
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
