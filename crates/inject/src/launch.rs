//! Starts a run: the target by itself or under outlast, and its client.

use crate::campaign::{Setting, Target};
use crate::capture::Capture;
use crate::descendant::Descendant;
use crate::error::{on, Error};
use crate::group::Group;
use crate::room::Room;
use libc::pid_t;
use outlast_supervisor::end::End;
use outlast_supervisor::state_folder::{StateFolder, VARIABLE};
use outlast_supervisor::{ask, status};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The name of how a client ended, among what can be seen.
pub const CLIENT_STATUS: &str = "client status";

/// What all runs of a campaign have in common.
pub struct Stage<'a> {
    pub target: &'a Target,
    pub outlast: PathBuf,
    pub state: PathBuf,
}

/// What is particular to a run.
#[derive(Clone, Copy, Default)]
pub struct Manner<'a> {
    /// Stop at the exec, traced by this thread; of a run by itself.
    pub traced: bool,
    /// Have every system call of a protected program be told by a signal.
    pub every_call: bool,
    pub group: Option<&'a Group>,
}

/// A run under way.
pub struct Run {
    child: Process,
    drive: Option<Process>,
    /// Its name, if it is under outlast.
    name: Option<String>,
    state: PathBuf,
    /// The descendant that is the target, if it is one.
    descendant: Option<Descendant>,
    pub started: Instant,
}

/// A child, its output, and how it ended.
pub struct Process {
    pub pid: pid_t,
    stdout: Capture,
    stderr: Capture,
    pub end: Option<End>,
}

impl Stage<'_> {
    /// Starts the target in a room; `name` is one that no other run has.
    pub fn start(&self, setting: &Setting, room: &Room, name: &str, manner: Manner<'_>) -> Result<Run, Error> {
        let mut words: Vec<String> = Vec::new();
        if setting.protected {
            words.push(self.outlast.display().to_string());
            words.extend(["run", "--name", name].map(String::from));
            words.extend(setting.options.iter().cloned());
            if manner.every_call {
                words.push("--no-rewrite".into());
            }
            words.push("--".into());
        }
        words.extend(self.target.command.iter().cloned());
        let mut command = self.command(&words, room);
        if let Some(stdin) = &self.target.stdin {
            let path = room.work().join(stdin);
            command.stdin(File::open(&path).map_err(on("read", &path))?);
        }
        if let Some(group) = manner.group {
            let members = File::options().write(true).open(group.members()).map_err(on("open", group.members()))?;
            // SAFETY: one system call on a descriptor that the closure keeps.
            unsafe {
                command.pre_exec(move || io::Write::write(&mut &members, b"0").map(drop));
            }
        }
        if manner.traced && !setting.protected {
            // SAFETY: one system call, without pointers.
            unsafe {
                command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                    -1 => Err(io::Error::last_os_error()),
                    _ => Ok(()),
                });
            }
        }
        if !setting.protected {
            ends_with_this_thread(&mut command);
        }
        let child = Process::start(command, &words[0])?;
        let mut run = Run {
            child,
            drive: None,
            name: setting.protected.then(|| name.to_string()),
            state: self.state.clone(),
            descendant: self.target.process.as_deref().map(Descendant::new),
            started: Instant::now(),
        };
        if let Some(words) = &self.target.drive {
            let mut client = self.command(words, room);
            ends_with_this_thread(&mut client);
            match Process::start(client, &words[0]) {
                Ok(drive) => run.drive = Some(drive),
                Err(e) => {
                    run.kill();
                    return Err(e);
                }
            }
        }
        Ok(run)
    }

    pub fn command(&self, words: &[String], room: &Room) -> Command {
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .current_dir(room.work())
            .envs(&self.target.env)
            .env(VARIABLE, &self.state)
            .stdin(Stdio::null())
            .process_group(0);
        command
    }
}

/// Has what is started end with the injector, also if that is killed. Of protected programs outlast would only start another
/// supervisor: the next start of the campaign ends them.
fn ends_with_this_thread(command: &mut Command) {
    // SAFETY: one system call, without pointers.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
}

impl Process {
    fn start(mut command: Command, what: &str) -> Result<Self, Error> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child: Child = command.spawn().map_err(on("start", what))?;
        let missing = || Error::Unharmed(format!("{what} has no output"));
        let stdout = Capture::of(child.stdout.take().ok_or_else(missing)?);
        let stderr = Capture::of(child.stderr.take().ok_or_else(missing)?);
        Ok(Self { pid: child.id() as pid_t, stdout, stderr, end: None })
    }

    /// Looks whether it has ended.
    fn look(&mut self) -> bool {
        if self.end.is_none() {
            let mut status = 0;
            // SAFETY: `status` is an int of ours; the process is our child.
            if unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG) } == self.pid {
                self.end = End::of(status);
            }
        }
        self.end.is_some()
    }

    fn kill(&mut self) {
        if self.end.is_none() {
            // SAFETY: plain system calls; the child is not reaped, so that number and group are its own.
            unsafe {
                libc::kill(-self.pid, libc::SIGKILL);
                libc::kill(self.pid, libc::SIGKILL);
            }
            for _ in 0..2_000 {
                if self.look() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

impl Run {
    /// The process that runs the target now.
    pub fn program(&self) -> Option<pid_t> {
        let Some(name) = &self.name else {
            let child = self.child.end.is_none().then_some(self.child.pid)?;
            return self.descendant.as_ref().map_or(Some(child), |descendant| descendant.of(child));
        };
        let session = StateFolder::open_at(self.state.clone()).ok()?.program(name).ok()?.open_session().ok()?;
        status::program(&session, Some(self.child.pid)).filter(|pid| *pid != self.child.pid)
    }

    pub fn child(&self) -> pid_t {
        self.child.pid
    }

    pub fn is_protected(&self) -> bool {
        self.name.is_some()
    }

    /// How the run ended, if tracing its process told it.
    pub fn ended(&mut self, end: Option<End>) {
        if self.name.is_none() && self.descendant.is_none() && self.child.end.is_none() {
            self.child.end = end;
        }
    }

    /// Looks whether target and client have ended.
    pub fn look(&mut self) -> bool {
        let drive = self.drive.as_mut().is_none_or(Process::look);
        self.child.look() && drive
    }

    /// How the client ended, as far as that has been looked at.
    pub fn client_end(&self) -> Option<End> {
        self.drive.as_ref()?.end
    }

    pub fn target_has_ended(&mut self) -> bool {
        self.child.look()
    }

    pub fn is_flood(&self) -> bool {
        let all = [Some(&self.child), self.drive.as_ref()];
        all.into_iter().flatten().any(|process| process.stdout.is_flood() || process.stderr.is_flood())
    }

    /// Ends whatever is left of it.
    pub fn kill(&mut self) {
        if let Some(name) = &self.name {
            let folder = StateFolder::open_at(self.state.clone()).and_then(|state| state.program(name));
            if let Some(folder) = folder.ok().filter(|folder| folder.has("session")) {
                let _ = ask::stop(&folder, Duration::from_millis(1));
            }
        }
        self.child.kill();
        if let Some(drive) = &mut self.drive {
            drive.kill();
        }
    }

    /// How the target ended, and all that was printed, by name.
    pub fn finish(mut self) -> (Option<End>, Vec<(&'static str, Vec<u8>)>) {
        self.kill();
        let mut streams = vec![("stdout", self.child.stdout.end()), ("stderr", self.child.stderr.end())];
        if let Some(drive) = self.drive {
            let status = crate::view::ending(drive.end).into_bytes();
            streams.extend([
                ("client stdout", drive.stdout.end()),
                ("client stderr", drive.stderr.end()),
                (CLIENT_STATUS, status),
            ]);
        }
        (self.child.end, streams)
    }
}
