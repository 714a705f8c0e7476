//! How a program is protected: the options that all commands have which begin that.

use crate::{duration, installed};
use clap::{Args, ValueEnum};
use outlast_archive::Policy;
use outlast_image::inject::option;
#[cfg(feature = "mutants")]
use outlast_image::mutant::Mutant;
use outlast_interfaces::sysc::Visible;
use outlast_interfaces::{checkpoint, crash, generations, hang, leaks, plugin, server, storm, visible};
use outlast_pins::Wishes;
use outlast_supervisor::journal;
use outlast_supervisor::options::Options;
use std::path::PathBuf;
use std::time::Duration;

/// Options of protection
#[derive(Args)]
pub struct How {
    /// Keep the store in this folder of a disk rather than in memory
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// What commits stand before
    #[arg(long, value_enum, default_value = "visible")]
    commit: When,
    /// It is a server: what it sends on connections that clients have made has no commit before it
    ///
    /// Its requests are logged, and the kernel counts what it has sent; recovered, it answers them again, and what has been sent is not sent
    /// twice. That is right if a reply depends on the requests of its own connection alone, not on others, random numbers (TLS) or the
    /// time. Replies of one thread, over TCP, with io_uring; all others have commits before them.
    #[arg(long)]
    server: bool,
    /// Protect its children as well, and theirs
    ///
    /// Each is recovered by itself, and its parent sees nothing of that. So far without it children run unprotected, and so they do with it if they
    /// are threads' children or share memory with their parent.
    #[arg(long)]
    pub tree: bool,
    /// Commit at least this often while the program computes (50ms, 1s, never)
    ///
    /// auto: every second, or less often where that would take more than a hundredth of the time; with --commit manual never.
    #[arg(long, value_name = "DURATION", default_value = "auto", value_parser = Every::parse)]
    every: Every,
    /// How pages that were written are found
    #[arg(long, value_enum, default_value = "auto")]
    tracker: Tracker,
    /// Attempts against the same fatal signal before the program may die of it
    #[arg(long, value_name = "N", default_value_t = 3)]
    retries: u32,
    /// Keep older states of the program: one every so often, for so long, in so much room (10s:1h:256MiB)
    ///
    /// The last two may be left out, and are 1h and 256MiB then. The last 32 all stay; older ones thin out to an eighth of their age
    /// between two. See `outlast generations`, `rewind` and `fork`. A program that fails the same way after all
    /// --retries goes back to the newest of them, then to older ones, before it may die.
    #[arg(long, value_name = "EVERY:FOR:BUDGET")]
    generations: Option<Policy>,
    /// Encrypt these states with the key in this file: at least 32 random bytes, which nobody else may read
    ///
    /// It is needed again to go back to one, and is not kept: without it they are lost. Not encrypted is the store itself, the
    /// program's present state: with --store, have that folder on an encrypted file system.
    #[arg(long, value_name = "KEYFILE", requires = "generations")]
    pub encrypt: Option<PathBuf>,
    /// Do not use io_uring; a kill within a system call may then lose or repeat it
    #[arg(long)]
    no_io_uring: bool,
    /// Do not rewrite the program's system call sites in memory
    #[arg(long)]
    no_rewrite: bool,
    /// End what hangs, and go on from the last commit: a thread that computes for longer without a system call than it has before at that place
    ///
    /// A place is known when it has been seen fifty times, which takes at least some twelve seconds. With a DURATION whatever computes for that long
    /// counts as a hang, known or not. Without --every the program is not committed while it computes, so that it goes on from before the hang.
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "learn", require_equals = true, value_parser = Hang::parse)]
    hang: Option<Hang>,
    /// Functions that are code sections for --hang, by their symbols, or /FILE:SYMBOL in a library; needs CAP_BPF and CAP_PERFMON
    ///
    /// A thread that computes for longer in one than it has before, calls or not, hangs. The program stays as it is: the kernel has breakpoints at
    /// the function's entry and its exits, which cost a microsecond or more each time, up to some thirty on a virtual machine, also other programs that execute the same file.
    #[arg(long, value_name = "SYMBOL,…", value_delimiter = ',', requires = "hang")]
    sections: Vec<String>,
    /// Have a module protect it that was loaded with `outlast module load`; may be given more than once
    ///
    /// SETTINGS are text that the module understands, and says so if it does not.
    #[arg(long, value_name = "NAME[=SETTINGS]", value_parser = module)]
    module: Vec<plugin::Wish>,
    /// Tell of a storm: more than so many recoveries within so long (5:60s, never)
    ///
    /// It is in the log, in `outlast metrics` and in the journal, and runs the command of --alert, at most once in that time.
    #[arg(long, value_name = "N:WINDOW", default_value = "5:60s", value_parser = Storm::parse)]
    storm: Storm,
    /// Tell of a leak: open files, or memory, that have grown for so long and come to so many percent of what is allowed (10m:50)
    ///
    /// The percentage may be left out, and is 50 then. It is in the log, in `outlast metrics` and in the journal, at most once in that time. A
    /// program that falls back at least once in seven eighths of it does not leak. What is allowed is the number of open files, and the memory
    /// of the program's control groups or of the machine.
    #[arg(long, value_name = "WINDOW[:PERCENT]", value_parser = Leaks::parse)]
    leaks: Option<Leaks>,
    /// Run this command when there is a storm; once for each of its words, the first being an absolute path
    ///
    /// It runs as the program's user, without a shell, nobody waits for it, and it finds OUTLAST_NAME, OUTLAST_CAUSE, OUTLAST_RECOVERIES,
    /// OUTLAST_WINDOW (seconds), OUTLAST_PID and OUTLAST_STATE_DIR in its environment.
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    alert: Vec<String>,
    /// Whether systemd's journal is told what is in the log
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, default_value = "auto", default_missing_value = "yes", require_equals = true)]
    journal: Journal,
    /// Which modules protect it, and no others; once for each, or with commas between (crash,visible)
    ///
    /// Unless told: crash, visible, checkpoint but with --commit manual or --hang, storm, server with --server, generations with --generations, hang with --hang. Other options say how each does. See `outlast
    /// module`, by which that changes while the program runs.
    #[arg(long, value_enum, value_name = "MODULE", value_delimiter = ',')]
    modules: Vec<Name>,
    /// Read the whole store back at once when the program is recovered
    #[arg(long)]
    eager: bool,
    /// Size of the log of commits before it is folded
    #[arg(long, hide = true, value_name = "BYTES", default_value_t = Options::default().ring_len)]
    ring: u64,
    /// How the program's page faults are learnt of; each falls back to the next
    #[arg(long, hide = true, value_enum, default_value = "list")]
    faults: Faults,
    /// Look at all of memory after every commit for what it missed
    #[arg(long, hide = true)]
    check_commits: bool,
    /// Switch one mechanism off
    #[cfg(feature = "mutants")]
    #[arg(long, hide = true, value_parser = hook)]
    test_hook: Vec<Mutant>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    /// Every event that somebody could see; what a program prints in quick succession leaves together, up to half a millisecond late
    Visible,
    /// The same, each output alone
    Each,
    /// When asked by `outlast commit`, and as often as --every says: files go back to the commit, too, but what was sent since is
    /// sent again
    Manual,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tracker {
    /// The best one the kernel has
    Auto,
    /// The kernel notes written pages (Linux 6.7)
    Async,
    /// Write-protect and signal (any kernel)
    Mprotect,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Faults {
    /// A BPF program lists them
    List,
    /// A perf event samples them
    Samples,
    /// The kernel counts them
    Count,
}

/// A module.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Recovers it from deaths
    Crash,
    /// Commits before whatever others can see
    Visible,
    /// Spares a server the commits before its replies
    Server,
    /// Commits while it computes
    Checkpoint,
    /// Keeps older states
    Generations,
    /// Ends what hangs
    Hang,
    /// Tells of many recoveries in a short time
    Storm,
    /// Tells when descriptors or memory get more and more
    Leaks,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Journal {
    /// Of programs that a policy designates
    Auto,
    Yes,
    No,
}

/// What counts as a storm.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Storm(pub Option<storm::Settings>);

impl Storm {
    pub fn parse(text: &str) -> Result<Storm, String> {
        if text == "never" {
            return Ok(Storm(None));
        }
        let (most, within) = text.split_once(':').ok_or("write 5:60s, or never")?;
        let most = most.parse().ok().filter(|most| (1..=MOST_RECOVERIES).contains(most));
        let most = most.ok_or_else(|| format!("{MOST_RECOVERIES} recoveries at most, and at least one"))?;
        Ok(Storm(Some(storm::Settings { most, within: duration::parse(within)? })))
    }
}

/// What a command of an alert is not.
pub const RELATIVE_ALERT: &str = "--alert begins with the absolute path of a program";

/// More are not remembered.
const MOST_RECOVERIES: u32 = 10_000;

/// What counts as a leak.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Leaks(pub leaks::Settings);

impl Leaks {
    pub fn parse(text: &str) -> Result<Leaks, String> {
        let (window, percent) = text.split_once(':').unwrap_or((text, "50"));
        let percent = percent.parse().ok().filter(|percent| (1..=100).contains(percent));
        let percent = percent.ok_or("write 10m or 10m:50, up to 100 percent")?;
        let window = duration::parse(window)?;
        if window < LEAST_WINDOW {
            return Err(format!("at least {}", humantime::format_duration(LEAST_WINDOW)));
        }
        Ok(Leaks(leaks::Settings { window, percent }))
    }
}

/// What grows for less time may be anything; and looking more often would take time.
const LEAST_WINDOW: Duration = Duration::from_secs(2);

/// What counts as a hang.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hang(pub Option<Duration>);

impl Hang {
    pub fn parse(text: &str) -> Result<Hang, String> {
        match text {
            "learn" => Ok(Hang(None)),
            _ => duration::parse(text).map(|limit| Hang(Some(limit))),
        }
    }
}

/// How often to commit while the program computes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Every {
    Auto,
    Never,
    At(Duration),
}

impl Every {
    pub fn parse(text: &str) -> Result<Every, String> {
        match text {
            "auto" => Ok(Every::Auto),
            "never" => Ok(Every::Never),
            _ => duration::parse(text).map(Every::At),
        }
    }
}

impl How {
    /// What no kernel offers here, in words.
    pub fn is_impossible(&self) -> Option<&'static str> {
        let lacks = self.tracker == Tracker::Async && !outlast_supervisor::privileges::kernel_notes_written_pages();
        let relative = self.alert.first().is_some_and(|program| !program.starts_with('/'));
        lacks
            .then_some("--tracker async needs Linux 6.7 and userfaultfd; use --tracker auto")
            .or(relative.then_some(RELATIVE_ALERT))
            .or(self.contradicts_modules())
    }

    /// Are commits made only when asked for?
    pub fn is_manual(&self) -> bool {
        self.visible().is_none()
    }

    /// What the modules are to do.
    pub fn wishes(&self) -> Wishes {
        Wishes {
            crash: self.has(Name::Crash, true).then_some(crash::Settings { retries: self.retries }),
            visible: self.visible(),
            server: self.has(Name::Server, self.server).then_some(server::Settings {}),
            checkpoint: self.checkpoint(),
            generations: self.generations(),
            hang: self.hang(),
            sections: self.sections.clone(),
            alert: self.alert.clone(),
            storm: self.storm.0.filter(|_| self.has(Name::Storm, true)),
            leaks: self
                .has(Name::Leaks, self.leaks.is_some())
                .then(|| self.leaks.map_or(leaks::USUAL, |leaks| leaks.0)),
            plugins: self.module.clone(),
            has_begun: false,
        }
    }

    /// Does this module protect it? `usually`: unless modules are named.
    fn has(&self, module: Name, usually: bool) -> bool {
        if self.modules.is_empty() {
            usually
        } else {
            self.modules.contains(&module)
        }
    }

    /// Options of a module that is not named, or that leave nothing of one that is.
    fn contradicts_modules(&self) -> Option<&'static str> {
        let named = |module| self.modules.contains(&module);
        let (is_left_out, has_nothing) = (|module| !self.modules.is_empty() && !named(module), named);
        let visible = has_nothing(Name::Visible) && self.commit == When::Manual
            || is_left_out(Name::Visible) && self.commit == When::Each;
        let server = is_left_out(Name::Server) && self.server;
        let no_visible = self.has(Name::Server, self.server) && self.is_manual();
        let checkpoint = has_nothing(Name::Checkpoint) && self.every == Every::Never
            || is_left_out(Name::Checkpoint) && matches!(self.every, Every::At(_));
        let generations = is_left_out(Name::Generations) && self.generations.is_some();
        let hang = is_left_out(Name::Hang) && self.hang.is_some();
        let storm =
            has_nothing(Name::Storm) && self.storm.0.is_none() || is_left_out(Name::Storm) && !self.alert.is_empty();
        let leaks = is_left_out(Name::Leaks) && self.leaks.is_some();
        let words = [
            (leaks, "--leaks needs the module leaks, which --modules does not name"),
            (visible, "--modules and --commit contradict each other about visible"),
            (server, "--server needs the module server, which --modules does not name"),
            (
                no_visible,
                "server spares commits before replies, which visible makes: without visible there are none to spare",
            ),
            (checkpoint, "--modules and --every contradict each other about checkpoint"),
            (generations, "--generations needs the module generations, which --modules does not name"),
            (hang, "--hang needs the module hang, which --modules does not name"),
            (storm, "--modules and --storm or --alert contradict each other about storm"),
        ];
        words.into_iter().find_map(|(is_so, words)| is_so.then_some(words))
    }

    /// How the engine is to do what it does, whatever the modules say. `designated`: a policy wants it.
    pub fn options(&self, designated: bool) -> Options {
        let Wishes { crash, hang, sections, storm, alert, leaks, .. } = self.wishes();
        let mut options = Options {
            #[cfg(feature = "mutants")]
            mutants: self.test_hook.iter().fold(0, |all, mutant| all | mutant.bit()),
            retries: crash.map(|crash| crash.retries),
            ring_len: self.ring,
            hang,
            sections,
            storm,
            leaks,
            plugins: self.module.clone(),
            alert,
            journal: match self.journal {
                Journal::Yes => true,
                Journal::No => false,
                Journal::Auto => designated,
            }
            .then(journal::socket),
            ..Options::default()
        };
        options.set(option::TRACKER_MPROTECT, self.tracker == Tracker::Mprotect);
        options.set(option::NO_RING, self.no_io_uring);
        options.set(option::TREE, self.tree);
        options.set(option::NO_REWRITE, self.no_rewrite);
        options.set(option::EAGER, self.eager);
        options.set(option::NO_FAULT_LIST, self.faults != Faults::List);
        options.set(option::NO_FAULT_SAMPLES, self.faults == Faults::Count);
        options.set(option::CHECK_COMMITS, self.check_commits);
        options
    }

    fn visible(&self) -> Option<visible::Settings> {
        let outputs = if self.commit == When::Each { Visible::Each } else { Visible::Together };
        self.has(Name::Visible, self.commit != When::Manual).then_some(visible::Settings { outputs })
    }

    fn checkpoint(&self) -> Option<checkpoint::Settings> {
        // A commit in the middle of a hang would be what is gone back to.
        let usually = self.every != Every::Auto || self.commit != When::Manual && self.hang.is_none();
        let settings = match self.every {
            Every::Auto => checkpoint::AUTO,
            Every::Never => return None,
            Every::At(every) => checkpoint::Settings { every, sparing: false },
        };
        self.has(Name::Checkpoint, usually).then_some(settings)
    }

    fn generations(&self) -> Option<generations::Settings> {
        let settings = self.generations.map_or(generations::USUAL, settings_of);
        self.has(Name::Generations, self.generations.is_some()).then_some(settings)
    }

    fn hang(&self) -> Option<hang::Settings> {
        let limit = self.hang.and_then(|Hang(limit)| limit);
        self.has(Name::Hang, self.hang.is_some()).then_some(hang::Settings::with_limit(limit))
    }
}

/// What the module is told.
pub fn settings_of(policy: Policy) -> generations::Settings {
    generations::Settings {
        every: Duration::from_nanos(policy.every_ns),
        keep: Duration::from_nanos(policy.keep_ns),
        budget: policy.budget,
    }
}

/// A module that is loaded from a file, and what it is told. Whether there is one is seen when it is to protect something.
fn module(text: &str) -> Result<plugin::Wish, String> {
    let (name, settings) = text.split_once('=').unwrap_or((text, ""));
    installed::check_name(name).map_err(|e| e.to_string())?;
    let file = installed::file_of(name).map_err(|e| e.to_string())?;
    Ok(plugin::Wish { name: name.into(), file, settings: settings.into() })
}

#[cfg(feature = "mutants")]
fn hook(name: &str) -> Result<Mutant, String> {
    Mutant::named(name).ok_or_else(|| "no mechanism has this name".to_string())
}
