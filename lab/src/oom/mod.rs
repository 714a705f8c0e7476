//! Memory that runs out: the kernel's OOM killer meets protected programs in control groups of the second version.

mod charged;
mod ended;
mod exempt;
mod group;
mod limited;
mod moved;
mod program;
mod squeezed;
mod storm;

use crate::boot::{self, Life};
use crate::disk::Disk;
use crate::guest::{Guest, Hardware};
use crate::shell::Shell;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

const MIB: u64 = 1 << 20;
/// Bytes of the disk.
const DISK: u64 = 512 << 20;
const MEBIBYTES: u32 = 1536;

/// Have the kernel kill for lack of memory, in control groups of the second version
#[derive(clap::Args)]
pub struct Arguments {
    /// Folder with an unpacked kernel package; several: one machine each
    #[arg(long, required = true)]
    kernel: Vec<PathBuf>,
    /// Ends of a whole group in the middle of everything, for each kind of user
    #[arg(long, default_value_t = 6)]
    kills: u32,
    /// Makes the choices the same again (not the moments at which they meet the program)
    #[arg(long)]
    seed: Option<u64>,
    /// Only experiments with this in their names
    #[arg(long, default_value = "")]
    filter: String,
    /// Processors of the machine: with several, whom a whole group's end meets first is less settled
    #[arg(long, default_value_t = 1)]
    processors: u32,
    /// The outlast to test
    #[arg(long, default_value = "target/release/outlast")]
    outlast: PathBuf,
}

/// What an experiment found, in a few words; an error is what should not be.
type Finding = Result<String, Box<dyn Error>>;

/// Who runs outlast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    /// May exempt supervisor and anchor from the OOM killer.
    Root,
    Ordinary,
}

/// Machine after machine, and on each all experiments one after the other.
pub fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let seed = arguments.seed.unwrap_or_else(crate::seed);
    let room = tempfile::Builder::new().prefix("outlast-lab.").tempdir()?;
    let life = Life {
        script: include_str!("../../lives/commands"),
        options: "",
        programs: &["hoard", "ledger"],
        tools: &[&arguments.outlast, Path::new("/usr/bin/setpriv")],
    };
    let chance = Chance { seed, kills: arguments.kills };
    let hardware = Hardware { mebibytes: MEBIBYTES, processors: arguments.processors };
    let mut count = 0;
    for (n, package) in arguments.kernel.iter().enumerate() {
        let kernel = boot::prepare(room.path(), n, package, &life)?;
        let disk = Disk::formatted(room.path(), DISK)?;
        let mut shell = Shell::of(Guest::boot(room.path(), &kernel, &hardware, &disk)?)?;
        println!("Linux {}", shell.ask("uname -r")?.trim());
        count += experiments(&mut shell, &arguments.filter, &chance)?;
        shell.end()?;
    }
    println!("oom: {count} experiments, seed {seed}");
    Ok(())
}

/// What experiments choose at random.
struct Chance {
    seed: u64,
    /// Ends of a group.
    kills: u32,
}

type Experiment = fn(&mut Shell, &Chance) -> Finding;

const EXPERIMENTS: &[(&str, Experiment)] = &[
    ("exempt", |shell, _| exempt::all(shell)),
    ("alone-given-up", |shell, _| limited::given_up(shell, false)),
    ("alone-raised", |shell, _| limited::raised(shell, false)),
    ("group-given-up", |shell, _| limited::given_up(shell, true)),
    ("group-raised", |shell, _| limited::raised(shell, true)),
    ("group-ended", |shell, _| ended::all(shell)),
    ("charged-memory", |shell, _| charged::in_memory(shell)),
    ("charged-disk", |shell, _| charged::on_a_disk(shell)),
    ("moved-killed", |shell, _| moved::below_a_limit(shell)),
    ("moved-delegated", |shell, _| moved::by_its_user(shell, true)),
    ("moved-forbidden", |shell, _| moved::by_its_user(shell, false)),
    ("lowered", |shell, _| squeezed::lowered(shell, 72)),
    ("lowered-below-the-store", |shell, _| squeezed::lowered(shell, 16)),
    ("throttled", |shell, _| squeezed::throttled(shell)),
    ("storm-root", |shell, chance| storm::ends(shell, User::Root, chance)),
    ("storm-user", |shell, chance| storm::ends(shell, User::Ordinary, chance)),
];

fn experiments(shell: &mut Shell, filter: &str, chance: &Chance) -> Result<u32, Box<dyn Error>> {
    let mut count = 0;
    for (name, experiment) in EXPERIMENTS.iter().filter(|(name, _)| name.contains(filter)) {
        let begun = Instant::now();
        let found = experiment(shell, chance).map_err(|what| {
            let (console, seed) = (shell.run("dmesg | tail -n 120").unwrap_or_default().1, chance.seed);
            format!("{name}: {what}\n--- console ---\n{console}\nrun it again with --filter {name} --seed {seed}")
        })?;
        println!("{name}: {found} ({:.0} s)", begun.elapsed().as_secs_f64());
        count += 1;
    }
    match count {
        0 => Err(format!("no experiment has {filter:?} in its name").into()),
        _ => Ok(count),
    }
}

/// An error unless something is so.
fn expect(is_so: bool, what: impl FnOnce() -> String) -> Result<(), Box<dyn Error>> {
    if is_so {
        Ok(())
    } else {
        Err(what().into())
    }
}
