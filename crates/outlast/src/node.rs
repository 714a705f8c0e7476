//! `outlast node`: other machines whose pins are used here, and which may use ours.

use crate::listing::{self, names};
use crate::output;
use clap::{Args, Subcommand};
use outlast_channel::{Key, Nodes, Standing, Status};
use outlast_daemon::Shown;
use outlast_interfaces::FOR_OTHER_NODES;
use outlast_supervisor::say::say;
use outlast_supervisor::Error;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Which other nodes there are.
pub const NODES: &str = "/etc/outlast/nodes.toml";
/// This node's own key.
pub const KEY: &str = "/etc/outlast/node.key";
/// What the daemon knows of them, beside its lock.
pub const SHOWN: &str = "/run/outlast-daemon.nodes";

/// Show the other nodes that the daemon speaks to, and this node's key
///
/// Nodes are machines that watch each other. Each has a key; /etc/outlast/nodes.toml lists the others, each as [node.NAME] with its key, its
/// address (to use it from here), watch = true (to be told here of its processors that do not switch) and may = ["schl/switched"] (what it may use here, an event
/// or an operation of a pin). `listen = "0.0.0.0:7607"` has the daemon listen; `patience = "2s"` says when a silent node has vanished. SIGHUP has the daemon
/// read the file again.
#[derive(Args)]
pub struct Node {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(List),
    Key(OwnKey),
    Check(Check),
}

/// List the other nodes, whether they are there, and since when
#[derive(Args)]
struct List {
    /// One array of JSON objects
    #[arg(long)]
    json: bool,
    #[arg(long, hide = true, value_name = "FILE", default_value = SHOWN)]
    daemon: PathBuf,
}

/// Print the public key of this node, for the files of others; it is made if there is none
#[derive(Args)]
struct OwnKey {
    /// Where the key is, or is to be
    #[arg(long, value_name = "FILE", default_value = KEY)]
    file: PathBuf,
}

/// Say what is wrong with the file that lists nodes, if anything; exit status 1 if so
#[derive(Args)]
struct Check {
    #[arg(value_name = "FILE", default_value = NODES)]
    file: PathBuf,
}

/// A node, as the list shows it.
#[derive(Serialize)]
struct Row {
    name: String,
    state: Standing,
    /// Seconds since 1970.
    since: u64,
    round_trip_us: Option<f64>,
    address: Option<String>,
    key: String,
    /// Why it is not there.
    why: Option<String>,
    /// Whether it is connected to this node, and what it may use here.
    uses_us: bool,
    may: Vec<String>,
    /// The pins of it that this node may use.
    pins: Vec<String>,
}

impl Node {
    pub fn execute(self) -> Result<i32, Error> {
        match self.command {
            Command::List(List { json, daemon }) => list(json, &daemon),
            Command::Key(OwnKey { file }) => {
                let key = Key::open_or_make(&file).map_err(|e| Error::Daemon(e.to_string()))?;
                output::text(&format!("{}\n", key.public()))
            }
            Command::Check(Check { file }) => match Nodes::read(&file, &FOR_OTHER_NODES) {
                Ok(Some(_)) => Ok(0),
                Ok(None) => {
                    say(format_args!("{}: there is no such file", file.display()));
                    Ok(1)
                }
                Err(refusal) => {
                    say(format_args!("{refusal}"));
                    Ok(1)
                }
            },
        }
    }
}

/// What the daemon knows.
pub fn shown(daemon: &Path) -> Result<Shown, Error> {
    let none = "no daemon runs here that speaks to other nodes; they are listed in /etc/outlast/nodes.toml";
    Shown::read(daemon).ok_or_else(|| Error::Daemon(none.into()))
}

fn list(json: bool, daemon: &Path) -> Result<i32, Error> {
    let rows: Vec<Row> = shown(daemon)?.nodes.into_iter().map(row).collect();
    let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
    let head = ["NODE", "STATE", "FOR", "ROUND TRIP", "ADDRESS", "USES US", "WHY"];
    listing::print(json, &rows, head, |row| {
        let since = std::time::Duration::from_secs(now.saturating_sub(row.since));
        let round_trip = row.round_trip_us.map_or("-".into(), |us| format!("{:.2} ms", us / 1e3));
        let uses = if row.uses_us { names(&row.may) } else { "-".into() };
        let text = |text: &Option<String>| text.clone().unwrap_or("-".into());
        let since = humantime::format_duration(since).to_string();
        [row.name.clone(), state(row.state).into(), since, round_trip, text(&row.address), uses, text(&row.why)]
    })
}

fn state(standing: Standing) -> &'static str {
    match standing {
        Standing::Here => "here",
        Standing::Sought => "sought",
        Standing::Vanished => "vanished",
        Standing::Awaited => "awaited",
    }
}

fn row(status: Status) -> Row {
    Row {
        name: status.node,
        state: status.standing,
        since: status.since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        round_trip_us: status.round_trip.map(|time| time.as_secs_f64() * 1e6),
        address: status.address,
        key: status.key,
        why: status.why,
        uses_us: status.uses_us,
        may: status.may,
        pins: status.offers.into_iter().map(|offer| offer.name).collect(),
    }
}
