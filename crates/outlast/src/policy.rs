//! `outlast policy`: what policies say.

use crate::designation::{self, check};
use crate::listing::names;
use crate::output::{self, columns};
use crate::switch;
use clap::{Args, Subcommand};
use outlast_policy::{parse, Policies, Refusal, Setting, Verdict};
use outlast_supervisor::say::say;
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::Error;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Check and list the policies that say which programs `outlast daemon` protects
#[derive(Args)]
pub struct Policy {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(Check),
    List(List),
}

/// Say what is wrong with policies, if anything; exit status 1 if so
#[derive(Args)]
struct Check {
    /// These files, wherever they are  [default: all that count]
    files: Vec<PathBuf>,
}

/// List the entries of all policies, the one that counts first first
#[derive(Args)]
struct List {
    /// One array of JSON objects
    #[arg(long)]
    json: bool,
    /// Those of this folder instead; may be given more than once
    #[arg(long, value_name = "DIR")]
    policies: Vec<PathBuf>,
}

/// An entry, as the list shows it.
#[derive(Serialize)]
struct Row<'a> {
    file: String,
    line: usize,
    verdict: &'static str,
    conditions: BTreeMap<&'static str, &'a str>,
    settings: &'a [Setting],
}

impl Policy {
    pub fn execute(self) -> Result<i32, Error> {
        match self.command {
            Command::Check(command) => command.execute(),
            Command::List(command) => command.execute(),
        }
    }
}

impl Check {
    fn execute(self) -> Result<i32, Error> {
        let refusals = match self.files.is_empty() {
            true => Policies::default().load(&designation::folders(), &check),
            false => self.files.iter().filter_map(|file| refused(file.clone()).err()).collect(),
        };
        tell(&refusals);
        Ok(i32::from(!refusals.is_empty()))
    }
}

fn refused(file: PathBuf) -> Result<(), Refusal> {
    let text = std::fs::read_to_string(&file);
    let text = text.map_err(|e| Refusal { file: file.clone(), line: 0, reason: e.to_string() })?;
    parse(&file, &text, designation::is_of_user(&file), &check).map(drop)
}

fn tell(refusals: &[Refusal]) {
    refusals.iter().for_each(|refusal| say(format_args!("{refusal}")));
}

impl List {
    fn execute(self) -> Result<i32, Error> {
        // Where there is none nothing can be protected either, which others say.
        StateFolder::open().iter().for_each(switch::tell);
        let mut policies = Policies::default();
        tell(&policies.load(&designation::folders_or(self.policies), &check));
        let rows: Vec<_> = policies.all().map(row).collect();
        if self.json {
            return output::json(&rows);
        }
        let head = ["POLICY", "VERDICT", "PROGRAMS", "HOW"].map(String::from);
        let cells = rows.iter().map(|row| {
            let conditions: Vec<_> = row.conditions.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let settings: Vec<_> = row.settings.iter().map(Setting::argument).collect();
            [format!("{}:{}", row.file, row.line), row.verdict.into(), names(&conditions), names(&settings)]
        });
        output::text(&columns(std::iter::once(head).chain(cells)))
    }
}

fn row(policy: &outlast_policy::Policy) -> Row<'_> {
    let (verdict, settings) = match &policy.verdict {
        Verdict::Protect(settings) => ("protect", &settings[..]),
        Verdict::Leave => ("leave", &[][..]),
    };
    let conditions = policy.conditions().into_iter().collect();
    Row { file: policy.file.display().to_string(), line: policy.line, verdict, conditions, settings }
}
