//! A conversation with python3: unharmed, or killed as the script says.

use crate::failure::{Failure, Outcome, Tried};
use crate::outlast::{Outlast, Status};
use crate::script::{Step, SCRIPT};
use crate::terminal::Terminal;
use rustix::process::{kill_process, Pid, Signal};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// What the two are compared by.
pub struct Seen {
    /// Every byte that the terminal showed.
    pub transcript: Vec<u8>,
    pub status: ExitStatus,
    /// What `outlast ps` said before the end; nothing of an unharmed one.
    pub protection: Option<Status>,
    /// How long each recovery took.
    pub recoveries: Vec<Duration>,
}

const PROMPT: &str = ">>> ";
/// Between two kills within a computation.
const WHILE: Duration = Duration::from_millis(250);

/// Holds the conversation with a python3 that nobody kills.
pub fn unharmed() -> Outcome<Seen> {
    hold(surroundings(Command::new("python3"), &["-q"]), None)
}

/// Holds it with one that is killed, printed as it happens.
pub fn harmed(outlast: &Outlast) -> Outcome<Seen> {
    hold(surroundings(outlast.run(&["python3", "-q"]), &[]), Some(outlast))
}

/// A terminal without colours and a python3 without the person's own settings, so that every answer is plain text.
fn surroundings(mut command: Command, args: &[&str]) -> Command {
    let own = ["PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PYTHONINSPECT"];
    command.args(args).env("TERM", "dumb").env("PYTHON_BASIC_REPL", "1").env("PYTHON_COLORS", "0");
    own.into_iter().for_each(|name| {
        command.env_remove(name);
    });
    command
}

fn hold(command: Command, outlast: Option<&Outlast>) -> Outcome<Seen> {
    let (mut terminal, mut child) = Terminal::start(command, outlast.is_some())?;
    let mut recoveries = Vec::new();
    let held = converse(&mut terminal, outlast, &mut recoveries);
    let protection = match held.and_then(|()| outlast.map(Outlast::status).transpose()) {
        Ok(protection) => protection,
        Err(failure) => {
            // The watcher first; what it watched ends with its terminal.
            let (_, _) = (child.kill(), child.wait());
            return Err(failure);
        }
    };
    terminal.press("import sys; sys.exit(42)\r")?;
    let status = child.wait().tried("wait for python3")?;
    Ok(Seen { transcript: terminal.transcript(), status, protection, recoveries })
}

fn converse(terminal: &mut Terminal, outlast: Option<&Outlast>, recoveries: &mut Vec<Duration>) -> Outcome<()> {
    terminal.await_end(0, PROMPT)?;
    let mut asked = 0;
    for step in SCRIPT {
        let before = terminal.len();
        match step {
            Step::Line(text) => {
                terminal.press(&format!("{text}\r"))?;
                terminal.await_end(before + text.len(), PROMPT)?;
            }
            Step::Keys(text) => {
                terminal.press(text)?;
                terminal.await_end(before, text)?;
            }
            Step::Compute(text) => {
                asked = before + text.len();
                terminal.press(&format!("{text}\r"))?;
            }
            Step::Answer => terminal.await_end(asked, PROMPT)?,
            Step::Kill | Step::KillComputing => {
                let Some(outlast) = outlast else { continue };
                if *step == Step::KillComputing {
                    std::thread::sleep(WHILE);
                }
                let computing = *step == Step::KillComputing && !terminal.ends_with(asked, PROMPT);
                recoveries.push(kill(outlast, terminal, recoveries.len() + 1, computing)?);
            }
        }
    }
    Ok(())
}

/// Kills the process, waits until it runs again, and says so.
fn kill(outlast: &Outlast, terminal: &Terminal, n: usize, computing: bool) -> Outcome<Duration> {
    let pid = outlast.status()?.pid.and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Failure::Command("ps --json".into(), "the program has no process".into()))?;
    kill_process(pid, Signal::KILL).tried("send SIGKILL")?;
    let took = outlast.await_recovery(n)?;
    let when = if computing { "while it computes" } else { "while it waits" };
    let milliseconds = took.as_secs_f64() * 1e3;
    println!("\r\n    ── {n}: kill -9 {} {when}; running again after {milliseconds:.2} ms", pid.as_raw_nonzero());
    // The line that was interrupted only on this screen.
    print!("{}", terminal.last_line());
    Ok(took)
}
