//! What is done to a program from the screen: what the commands of these names do, each in a thread of its own, since they wait.

use crate::protection;
use outlast_supervisor::generations::{choose, list, rewind, Wanted};
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::{ask, orphans, processes, status, Error};
use rustix::process::{pidfd_send_signal, Signal};
use std::sync::mpsc::Sender;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Commit,
    Kill,
    Detach,
    Rewind(Wanted),
    Stop,
}

/// As `outlast stop` has it.
const PATIENCE: Duration = Duration::from_secs(10);

impl Act {
    /// What is asked before.
    pub fn question(self, name: &str) -> String {
        match self {
            Self::Commit => format!("Have {name} commit now?"),
            Self::Kill => format!("Kill {name} with SIGKILL, to see it recovered?"),
            Self::Detach => format!("Leave {name} alone, without protection?"),
            Self::Rewind(wanted) => format!("Have {name} go back to {}, and lose what came after?", words(wanted)),
            Self::Stop => format!("End {name} for good?"),
        }
    }

    fn done(self, name: &str) -> String {
        match self {
            Self::Commit => format!("{name} has committed"),
            Self::Kill => format!("{name} was killed"),
            Self::Detach => format!("{name} runs on without protection"),
            Self::Rewind(_) => format!("{name} is in that state now"),
            Self::Stop => format!("{name} has ended"),
        }
    }

    /// Does it meanwhile, and tells in the end what came of it.
    pub fn begin(self, name: String, tell: Sender<String>) {
        let work = move || {
            let said = match self.perform(&name) {
                Ok(()) => self.done(&name),
                Err(e) => e.to_string(),
            };
            // Who wanted to know may have left.
            let _ = tell.send(said);
        };
        // Where there is no thread to be had nothing is done, which the screen shows as well.
        let _ = std::thread::Builder::new().name("act".into()).spawn(work);
    }

    fn perform(self, name: &str) -> Result<(), Error> {
        let folder = StateFolder::open()?.program(name)?;
        match self {
            Self::Commit => ask::commit(&folder),
            Self::Detach => ask::detach(&folder),
            Self::Stop => ask::stop(&folder, PATIENCE),
            Self::Kill => {
                let not_running = || Error::NotRunning(name.into());
                let pid = status::of(&folder)?.pid.ok_or_else(not_running)?;
                let process = processes::open(pid).map_err(|_| not_running())?;
                // Its number may have become another's before it was opened.
                if status::of(&folder)?.pid != Some(pid) {
                    return Err(not_running());
                }
                pidfd_send_signal(&process, Signal::KILL).map_err(|e| Error::Kernel("send a signal", e))
            }
            Self::Rewind(wanted) => {
                let number = choose(name, &list(&folder)?, wanted)?;
                let session = folder.open_session().map_err(|_| Error::NotRunning(name.into()))?;
                if !orphans::is_alive(&session) {
                    return Err(Error::NotRunning(name.into()));
                }
                rewind(&folder, number, None, &protection::go_on(&[]), true).map(drop)
            }
        }
    }
}

fn words(wanted: Wanted) -> String {
    match wanted {
        Wanted::Number(number) => format!("generation {number}"),
        Wanted::Age(age) => format!("the newest state that is {} old", humantime::format_duration(age)),
    }
}
