//! `outlast run`: run a program so that it outlasts its own death.

use crate::how::How;
use crate::{duration, protection};
use clap::Args;
use outlast_image::inject::option;
use outlast_supervisor::front::Front;
use outlast_supervisor::options::Options;
use outlast_supervisor::say::say;
use outlast_supervisor::start::{run, Begun, Request};
use outlast_supervisor::{departure, Error};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Run a program so that it outlasts its own death
#[derive(Args)]
pub struct Run {
    /// Name for ps, log, resume …  [default: the program's, with a number if that is taken]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    how: How,
    /// Have commits on the medium, and what the program has written to files by then: with --store on a disk it survives loss of power
    ///
    /// visible: before the event that each stands before. A duration (200ms): that much later at most, which is much cheaper; a loss of
    /// power then takes the program and its files back by so much, and what it showed meanwhile may be shown again, or never was.
    #[arg(long, value_name = "visible|DURATION", num_args = 0..=1, default_missing_value = "visible", require_equals = false, value_parser = Durable::parse)]
    durable: Option<Durable>,
    /// Go on with a program that had begun: its file, device and inode of that, what it is named after, what its process is called
    #[arg(long, hide = true, num_args = 5, value_names = ["FILE", "DEVICE", "INODE", "CALLED", "COMM"])]
    begun: Option<Vec<OsString>>,
    /// The file of the policy that designates it
    #[arg(long, hide = true, value_name = "FILE", requires = "begun")]
    policy: Option<PathBuf>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// When a commit is on the medium.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Durable {
    Visible,
    Within(Duration),
}

impl Durable {
    fn parse(text: &str) -> Result<Durable, String> {
        match text {
            "visible" => Ok(Durable::Visible),
            _ => duration::parse(text).map(Durable::Within).map_err(|e| format!("{e}; or visible")),
        }
    }
}

impl Run {
    pub fn execute(self) -> Result<i32, Error> {
        if let Some(contradiction) = self.contradiction() {
            say(format_args!("{contradiction}"));
            return Ok(2);
        }
        let (options, wishes) = (self.options(), self.how.wishes());
        // A service manager waits for the first process of a daemon, but knows others, too. A shell has its job in one process.
        let front = (self.how.tree && self.begun.is_some()).then(|| {
            // SAFETY: nothing has started a thread yet.
            unsafe { Front::stand() }
        });
        let front = front.transpose().map_err(|e| Error::Kernel("start a process", e))?;
        let load = protection::start(&wishes);
        let begun = match self.begun.as_deref().map(|words| begun(words, self.policy.as_ref())) {
            Some(None) => {
                say(format_args!("--begun has a file, two numbers, another file and a name"));
                return Ok(2);
            }
            begun => begun.flatten(),
        };
        let Run { name, how: How { store, encrypt, .. }, program: argv, .. } = self;
        let request = Request { argv, begun, name, store, options, encrypt, load: &load };
        departure::depart(run(&request, front)?)
    }

    /// The part of it that has nothing to do with which program it is.
    pub fn how(self) -> How {
        self.how
    }

    /// What cannot be done as it was asked for, in words.
    pub fn contradiction(&self) -> Option<&'static str> {
        const BOTH: &str = "--durable DURATION takes back files after a loss of power, --commit manual after every death: use --durable";
        let both = self.lag().is_some() && self.how.is_manual();
        self.how.is_impossible().or(both.then_some(BOTH))
    }

    /// How the engine is to do what it does, whatever the modules say.
    fn options(&self) -> Options {
        let lag_ns = self.lag().map_or(0, |lag| lag.as_nanos() as u64);
        let mut options = Options { lag_ns, ..self.how.options(self.begun.is_some()) };
        options.set(option::DURABLE, self.durable.is_some());
        options
    }

    fn lag(&self) -> Option<Duration> {
        match self.durable {
            Some(Durable::Within(lag)) => Some(lag),
            Some(Durable::Visible) | None => None,
        }
    }
}

fn begun(words: &[OsString], policy: Option<&PathBuf>) -> Option<Begun> {
    let [file, device, inode, called, comm] = words else { return None };
    let number = |word: &OsString| word.to_str()?.parse().ok();
    Some(Begun {
        file: file.into(),
        identity: (number(device)?, number(inode)?),
        called: called.into(),
        comm: comm.clone(),
        policy: policy.cloned(),
    })
}
