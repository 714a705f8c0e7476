//! Brings the server up: the components, the content process, and the front's threads.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::Arc;
use std::time::SystemTime;

use outlast_glue_rt::{Handle, Spec, System};
use rustix::event::epoll;

use crate::content::GRANTS;
use crate::failure::{fail, part, Failure};
use crate::front::{Front, Table, MAIN};
use crate::guarded::Guarded;
use crate::log::Log;
use crate::options::Options;
use crate::partner::Partner;
use crate::stubs::{Event, Lock, Memory, Scheduler, Timer};
use crate::worker::Worker;
use crate::{clock, poller};

/// Everything that runs. Its components end with it.
pub struct Running {
    pub address: SocketAddr,
    pub files: u64,
    pub bytes: u64,
    front: Arc<Front>,
    content: Child,
    _system: System,
}

pub fn start(options: &Options) -> Result<Running, Failure> {
    let listen = |error| Failure::Listen(options.listen.clone(), error);
    let listener = TcpListener::bind(&options.listen).map_err(listen)?;
    listener.set_nonblocking(true).map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let mut system = System::new();
    let mut component = |name: &str| {
        let own = std::env::current_exe().map_err(Failure::Content)?;
        let arguments = vec![options.stubs.component(name)];
        let spec = Spec { name: name.into(), program: own.with_file_name("outlast-service"), arguments };
        system.start(spec).map_err(Failure::from)
    };
    let [event, fs, lock] = [component("event")?, component("fs")?, component("lock")?];
    let [memory, scheduler, timer] = [component("memory")?, component("scheduler")?, component("timer")?];
    let channel =
        |handle: &Handle, name: &'static str| handle.grant()?.open().map_err(|error| Failure::Channel(name, error));
    let stubs = options.stubs;
    let locks = Lock::new(stubs, channel(&lock, "lock")?);
    let events = Event::new(stubs, channel(&event, "event")?);
    let memory_client = Memory::new(stubs, channel(&memory, "memory")?);
    let threads = Scheduler::new(stubs, channel(&scheduler, "scheduler")?);
    let workers: Vec<u64> =
        (0..options.workers).map(|_| threads.sched_create(1)).collect::<Result<_, _>>().map_err(Failure::Call)?;
    let (content, mut output) = content(options, memory_client.mem_who()?, [&event, &fs, &memory])?;
    let mailboxes: Vec<[u64; 3]> = (0..options.workers).map(|_| line(&mut output)).collect::<Result<_, _>>()?;
    let [files, bytes] = line(&mut output)?;
    let front = Arc::new(Front {
        table: Guarded::new(&locks, Table::default())?,
        log: match &options.log {
            Some(path) => Some(Guarded::new(&locks, Log::open(path)?)?),
            None => None,
        },
        locks,
        events,
        memory: memory_client,
        scheduler: threads,
        timers: Timer::new(stubs, channel(&timer, "timer")?),
        listener,
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| Failure::Poll(error.into()))?,
        workers,
        open: Arc::new(AtomicUsize::new(0)),
        most: options.connections as usize,
        paused: AtomicBool::new(false),
        timeout: options.timeout,
        loaded: SystemTime::now(),
    });
    for (number, [alias, asked, answered]) in mailboxes.into_iter().enumerate() {
        let (mailbox, events) = (front.memory.map(alias)?, front.events.clone());
        let partner = Partner { mailbox, events, asked, answered, last: 0 };
        let worker = Worker { front: front.clone(), number, partner };
        part(&format!("worker{number}"), move || worker.run()).map_err(Failure::Poll)?;
    }
    let (poller, clock) = (front.clone(), front.clone());
    part("poller", move || poller::run(&poller)).map_err(Failure::Poll)?;
    part("clock", move || clock::run(&clock)).map_err(Failure::Poll)?;
    part("watch", move || {
        // It says no more: its end is all that is to be read.
        let _ = std::io::copy(&mut output, &mut std::io::sink());
        fail(&Failure::ContentEnded)
    })
    .map_err(Failure::Poll)?;
    Ok(Running { address, files, bytes, front, content, _system: system })
}

/// Starts the content process, which ends with this one.
fn content(
    options: &Options,
    front: u32,
    components: [&Handle; 3],
) -> Result<(Child, BufReader<ChildStdout>), Failure> {
    let mut command = Command::new(std::env::current_exe().map_err(Failure::Content)?);
    command.args(["--stubs", options.stubs.name(), "--workers", &options.workers.to_string()]);
    command.args(["--content", &front.to_string(), "--root"]).arg(&options.root);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    for (component, name) in components.into_iter().zip(GRANTS) {
        component.grant()?.pass(&mut command, name);
    }
    let parent = std::process::id() as libc::pid_t;
    // SAFETY: between fork and exec only system calls are made.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            match libc::getppid() == parent {
                true => Ok(()),
                false => Err(std::io::ErrorKind::BrokenPipe.into()),
            }
        });
    }
    let mut child = command.spawn().map_err(Failure::Content)?;
    let output = child.stdout.take().ok_or(Failure::ContentEnded)?;
    Ok((child, BufReader::new(output)))
}

/// Numbers that the content process says. Where it says none it has ended, and why is on standard error.
fn line<const N: usize>(output: &mut impl BufRead) -> Result<[u64; N], Failure> {
    let mut line = String::new();
    output.read_line(&mut line).map_err(Failure::Content)?;
    let numbers: Option<Vec<u64>> = line.split_whitespace().map(|number| number.parse().ok()).collect();
    numbers.and_then(|numbers| numbers.try_into().ok()).ok_or(Failure::Said)
}

impl Running {
    /// Ends what was started; nothing is left of it.
    pub fn end(mut self) -> Result<(), Failure> {
        if let Some(log) = &self.front.log {
            log.with(&self.front.locks, MAIN, Log::flush)??;
        }
        let _ = self.content.kill();
        let _ = self.content.wait();
        let _ = std::io::stdout().flush();
        Ok(())
    }
}
