//! `outlast module add`: options are those of `outlast run`.

use crate::how::{self, Hang, Leaks, Storm};
use crate::installed;
use clap::{Args, Subcommand, ValueEnum};
use outlast_archive::Policy;
use outlast_interfaces::change::{Added, Change, Every, Limit};
use outlast_interfaces::sysc::Visible;

/// Have a module protect a program that runs, from now on or in another way
///
/// The program runs on undisturbed, and is protected so until its end, also after another program was executed or all was resumed from its store. What
/// is not mentioned stays as it is; where the module was not there, it is as with `outlast run`. A module that failed too often is loaded again.
///
/// One that was loaded with `outlast module load`: `outlast module add NAME PROGRAM [SETTINGS]`.
#[derive(Args)]
pub struct Add {
    #[command(subcommand)]
    module: Module,
}

#[derive(Subcommand)]
enum Module {
    Crash(Crash),
    Visible(OfVisible),
    Server(OfServer),
    Checkpoint(Checkpoint),
    Generations(Generations),
    Hang(OfHang),
    Storm(OfStorm),
    Leaks(OfLeaks),
    #[command(external_subcommand)]
    Plugin(Vec<String>),
}

/// Recovers it from deaths
#[derive(Args)]
struct Crash {
    program: String,
    /// Attempts against the same fatal signal before the program may die of it
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
}

/// Commits before whatever others can see
#[derive(Args)]
struct OfVisible {
    program: String,
    /// What commits stand before
    #[arg(long, value_enum)]
    commit: Option<When>,
}

#[derive(Clone, Copy, ValueEnum)]
enum When {
    /// Every event that somebody could see; what a program prints in quick succession leaves together
    Visible,
    /// The same, each output alone
    Each,
}

/// Spares a server the commits before its replies: see --server of `outlast run`
#[derive(Args)]
struct OfServer {
    program: String,
}

/// Commits while it computes
#[derive(Args)]
struct Checkpoint {
    program: String,
    /// At least this often (50ms, 1s); auto: every second, or less often where that would take more than a hundredth of the time
    #[arg(long, value_name = "DURATION", value_parser = how::Every::parse)]
    every: Option<how::Every>,
}

/// Keeps older states of it: see `outlast generations` and `outlast rewind`. Where it is removed, those that there are go, too
#[derive(Args)]
struct Generations {
    program: String,
    /// One every so often, for so long, in so much room (10s:1h:256MiB); the last two may be left out
    #[arg(long, value_name = "EVERY:FOR:BUDGET")]
    generations: Option<Policy>,
}

/// Ends what hangs, to go on from the last commit; best without checkpoint, which commits in the middle of a hang, too
#[derive(Args)]
struct OfHang {
    program: String,
    /// With a DURATION also what computes for longer than that without a system call, known or not
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "learn", require_equals = true, value_parser = Hang::parse)]
    hang: Option<Hang>,
    /// Functions that are code sections, by their symbols, or /FILE:SYMBOL in a library: see `outlast run --sections`
    #[arg(long, value_name = "SYMBOL,…", value_delimiter = ',', conflicts_with = "no_sections")]
    sections: Vec<String>,
    /// None are
    #[arg(long)]
    no_sections: bool,
}

/// Tells of many recoveries in a short time
#[derive(Args)]
struct OfStorm {
    program: String,
    /// More than so many recoveries within so long
    #[arg(long, value_name = "N:WINDOW", value_parser = Storm::parse)]
    storm: Option<Storm>,
    /// Run this command then; once for each of its words, the first being an absolute path
    #[arg(long, value_name = "WORD", allow_hyphen_values = true, conflicts_with = "no_alert")]
    alert: Vec<String>,
    /// Run none
    #[arg(long)]
    no_alert: bool,
}

/// Tells when descriptors or memory get more and more
#[derive(Args)]
struct OfLeaks {
    program: String,
    /// For so long, and when they have come to so many hundredths of what it may have  [default: 10m:50]
    #[arg(long, value_name = "WINDOW[:PERCENT]", value_parser = Leaks::parse)]
    leaks: Option<Leaks>,
}

impl Add {
    /// The program, and what is to become of its modules; or what is wrong with that, in words.
    pub fn wish(self) -> Result<(String, Change), String> {
        let instead = |option: &str, module: &str| format!("{option}: use `outlast module remove {module}`");
        let (program, added) = match self.module {
            Module::Crash(Crash { program, retries }) => (program, Added::Crash { retries }),
            Module::Visible(OfVisible { program, commit }) => {
                let outputs = commit.map(|when| match when {
                    When::Visible => Visible::Together,
                    When::Each => Visible::Each,
                });
                (program, Added::Visible { outputs })
            }
            Module::Server(OfServer { program }) => (program, Added::Server),
            Module::Checkpoint(Checkpoint { program, every }) => {
                let every = match every {
                    Some(how::Every::Never) => return Err(instead("--every never", "checkpoint")),
                    Some(how::Every::Auto) => Some(Every::Auto),
                    Some(how::Every::At(every)) => Some(Every::At(every)),
                    None => None,
                };
                (program, Added::Checkpoint { every })
            }
            Module::Generations(Generations { program, generations }) => {
                (program, Added::Generations { settings: generations.map(how::settings_of) })
            }
            Module::Hang(OfHang { program, hang, sections, no_sections }) => {
                let limit = hang.map(|Hang(limit)| limit.map_or(Limit::Learnt, Limit::At));
                let sections = (no_sections || !sections.is_empty()).then_some(sections);
                (program, Added::Hang { limit, sections })
            }
            Module::Storm(OfStorm { program, storm, alert, no_alert }) => {
                let measure = match storm {
                    Some(Storm(None)) => return Err(instead("--storm never", "storm")),
                    Some(Storm(measure)) => measure,
                    None => None,
                };
                if alert.first().is_some_and(|program| !program.starts_with('/')) {
                    return Err(how::RELATIVE_ALERT.into());
                }
                let alert = (no_alert || !alert.is_empty()).then_some(alert);
                (program, Added::Storm { measure, alert })
            }
            Module::Leaks(OfLeaks { program, leaks }) => {
                (program, Added::Leaks { settings: leaks.map(|Leaks(settings)| settings) })
            }
            Module::Plugin(words) => {
                let (name, program, settings) = match &words[..] {
                    [name, program] => (name, program, None),
                    [name, program, settings] => (name, program, Some(settings.clone())),
                    _ => return Err("write `outlast module add NAME PROGRAM [SETTINGS]`".into()),
                };
                installed::check_name(name).map_err(|e| e.to_string())?;
                let file = installed::file_of(name).map_err(|e| e.to_string())?;
                // Whoever watches the program may see another folder: so that is said by who knows.
                installed::contents(&file).map_err(|why| format!("module {name}: {why}"))?;
                (program.clone(), Added::Plugin { name: name.clone(), file, settings })
            }
        };
        Ok((program, Change::Add(added)))
    }
}
