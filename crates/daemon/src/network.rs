//! Other nodes: the channel to them and the modules that look after them, as long as a file says that there are any.

use crate::starvation::Inbox;
use crate::tell::{tell, NODES_REFUSED};
use crate::teller::{replace, Teller};
use outlast_channel::{queue, Channel, Hub, Key, Nodes, Status, To};
use outlast_core::Manifest;
use outlast_interfaces::oshang::Settings;
use outlast_interfaces::FOR_OTHER_NODES;
use outlast_pins::{Abroad, Heard};
use outlast_supervisor::clock;
use outlast_supervisor::say::say;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the person asked for.
pub struct Network {
    /// The file that says which there are.
    pub nodes: PathBuf,
    /// This node's own key.
    pub key: PathBuf,
    /// The modules that look after other nodes.
    pub modules: Vec<Manifest>,
    /// Where it is written what is known of them.
    pub shown: PathBuf,
}

/// What is known of other nodes, as the daemon writes it down every second.
#[derive(Serialize, Deserialize)]
pub struct Shown {
    /// When, on a clock that begins with the machine.
    at: Duration,
    pub key: String,
    /// Where this node listens.
    pub listens: Option<String>,
    pub nodes: Vec<Status>,
}

/// What is older was left by a daemon that runs no more.
const OLD: Duration = Duration::from_secs(5);

impl Shown {
    /// None: no daemon runs, or there are no other nodes.
    pub fn read(path: &Path) -> Option<Self> {
        let shown: Self = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        let now = Duration::from_nanos(clock::monotonic());
        now.checked_sub(shown.at).is_some_and(|age| age < OLD).then_some(shown)
    }
}

/// The same, as it runs.
pub struct Running {
    request: Network,
    settings: Settings,
    teller: Arc<Teller>,
    machine: Sender<Inbox>,
    now: Option<Now>,
    failed: Option<Failed>,
}

/// What the file says could not be begun; for another reason it is told again.
struct Failed {
    nodes: Nodes,
    why: String,
    at: Instant,
}

/// How long until it is tried again: the address to listen on may be there later, or free.
const AGAIN: Duration = Duration::from_secs(5);

struct Now {
    nodes: Nodes,
    key: String,
    channel: Arc<Channel>,
    abroad: JoinHandle<()>,
}

impl Running {
    pub fn new(request: Network, settings: Settings, teller: Arc<Teller>, machine: Sender<Inbox>) -> Self {
        Self { request, settings, teller, machine, now: None, failed: None }
    }

    /// Reads the file. One with an error is refused as a whole, and what it said before still counts.
    pub fn read(&mut self) {
        let nodes = match Nodes::read(&self.request.nodes, &FOR_OTHER_NODES) {
            Ok(nodes) => nodes,
            Err(refusal) => return refused(&refusal),
        };
        if nodes.is_some() && nodes.as_ref() == self.now.as_ref().map(|now| &now.nodes) {
            return;
        }
        self.stop();
        self.failed = None;
        if let Some(nodes) = nodes {
            self.try_with(nodes, "");
        }
    }

    /// As it may have failed before.
    fn try_with(&mut self, nodes: Nodes, before: &str) {
        match self.begin(nodes.clone()) {
            Ok(now) => self.now = Some(now),
            Err(why) => {
                let _ = self.machine.send(Inbox::Hub(None));
                if why != before {
                    refused(&format_args!("{}: {why}", self.request.nodes.display()));
                }
                self.failed = Some(Failed { nodes, why, at: Instant::now() });
            }
        }
    }

    /// To be called now and then: tries again what failed, and writes down what is known of other nodes.
    pub fn tend(&mut self) {
        self.look_whether_it_lives();
        if let Some(Failed { nodes, why, .. }) = self.failed.take_if(|failed| failed.at.elapsed() >= AGAIN) {
            self.try_with(nodes, &why);
        }
        self.show();
    }

    /// A thread that met a fault of its own is to be missed by nobody for long.
    fn look_whether_it_lives(&mut self) {
        let has_ended = |now: &Now| now.channel.has_ended() || now.abroad.is_finished();
        let Some(nodes) = self.now.as_ref().filter(|now| has_ended(now)).map(|now| now.nodes.clone()) else { return };
        self.stop();
        let why = format!("what speaks to other nodes has ended by a fault of its own; once more in {AGAIN:?}");
        refused(&why);
        self.failed = Some(Failed { nodes, why, at: Instant::now() });
    }

    fn begin(&self, nodes: Nodes) -> Result<Now, String> {
        let own = Key::open_or_make(&self.request.key).map_err(|e| e.to_string())?;
        let (to, news) = queue();
        let machine = self.machine.clone();
        let to = |hub: &Hub| {
            // Should it have ended, that was said.
            let _ = machine.send(Inbox::Hub(Some(hub.clone())));
            let visits = Box::new(move |visit| drop(machine.send(Inbox::Visit(visit))));
            let notices = Box::new(|line: &str| say(format_args!("{line}")));
            To { visits, news: to, notices }
        };
        let channel = Channel::begin(&nodes, &own, FOR_OTHER_NODES.to_vec(), to).map_err(|e| e.to_string())?;
        let channel = Arc::new(channel);
        let (of_thread, teller) = (Arc::clone(&channel), Arc::clone(&self.teller));
        let (settings, modules) = (self.settings, self.request.modules.clone());
        let watched: Vec<String> = nodes.nodes.iter().filter(|node| node.watch).map(|node| node.name.clone()).collect();
        let work = move || match Abroad::new(of_thread, news, &settings, &modules, &watched) {
            Ok(abroad) => hear(abroad, &teller),
            Err(failure) => refused(&format_args!("a module cannot look after other nodes: {failure}")),
        };
        let abroad = std::thread::Builder::new().name("abroad".into()).spawn(work).map_err(|e| e.to_string())?;
        let listens = channel.address().map_or("nowhere".into(), |address| address.to_string());
        say(format_args!("nodes: {} in {}, listens: {listens}", nodes.nodes.len(), self.request.nodes.display()));
        Ok(Now { nodes, key: own.public().to_string(), channel, abroad })
    }

    /// Speaks to none any more.
    pub fn stop(&mut self) {
        let Some(Now { channel, abroad, .. }) = self.now.take() else { return };
        channel.stop();
        drop(channel);
        // What it panicked with was said.
        let _ = abroad.join();
        let _ = self.machine.send(Inbox::Hub(None));
        let _ = std::fs::remove_file(&self.request.shown);
    }

    fn show(&self) {
        let Some(now) = &self.now else { return };
        let shown = Shown {
            at: Duration::from_nanos(clock::monotonic()),
            key: now.key.clone(),
            listens: now.channel.address().map(|address| address.to_string()),
            nodes: now.channel.statuses(),
        };
        // Where there is no room, nothing is known.
        let _ = serde_json::to_vec(&shown).ok().and_then(|bytes| replace(&self.request.shown, &bytes));
    }
}

fn refused(why: &dyn std::fmt::Display) {
    tell(&NODES_REFUSED, Vec::new(), format_args!("{why}"));
}

fn hear(mut abroad: Abroad, teller: &Teller) {
    while let Some(heard) = abroad.wait() {
        for heard in heard {
            match heard {
                Heard::Flagged(flagged) => teller.starved(&flagged),
                Heard::Vanished(vanished) => teller.vanished(&vanished.node, &vanished.why),
                Heard::Returned(returned) => teller.returned(&returned.node, returned.after),
                Heard::Said(line) => say(format_args!("{line}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn what_has_ended_by_itself_is_begun_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let other = Key::open_or_make(&file("other")).unwrap();
        let nodes = format!("listen = \"127.0.0.1:0\"\n[node.beta]\nkey = \"{}\"\nmay = [\"schl\"]\n", other.public());
        std::fs::write(file("nodes.toml"), nodes).unwrap();
        let request =
            Network { nodes: file("nodes.toml"), key: file("key"), modules: Vec::new(), shown: file("shown") };
        let (machine, inbox) = channel();
        let teller = Arc::new(Teller::new(Vec::new(), file("counts")));
        let mut running = Running::new(request, Settings::default(), teller, machine);
        running.read();
        running.tend();
        assert!(running.failed.is_none() && file("shown").exists());
        // As good as dead.
        running.now.as_ref().unwrap().channel.stop();
        while !running.now.as_ref().unwrap().channel.has_ended() {
            std::thread::yield_now();
        }
        running.tend();
        assert!(running.now.is_none() && !file("shown").exists());
        let failed = running.failed.as_mut().unwrap();
        failed.at = failed.at.checked_sub(AGAIN).unwrap();
        running.tend();
        assert!(running.now.as_ref().is_some_and(|now| !now.channel.has_ended()) && running.failed.is_none());
        running.stop();
        // The hub was given, taken, given and taken.
        let hubs: Vec<bool> = inbox
            .try_iter()
            .filter_map(|said| match said {
                Inbox::Hub(hub) => Some(hub.is_some()),
                Inbox::Visit(_) | Inbox::Wake => None,
            })
            .collect();
        assert_eq!(hubs, [true, false, true, false]);
    }
}
