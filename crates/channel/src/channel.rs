//! All connections, as others have them: a thread ([`Work`]) that is told what is wanted, and tells what comes in.

use crate::calling::{Calling, Reply};
use crate::frame::{Answer, Told};
use crate::key::Key;
use crate::news;
use crate::nodes::Nodes;
use crate::remote::Remote;
use crate::serving::{Serving, Visit};
use crate::status::Status;
use crate::work::Work;
use outlast_core::{Interface, Payload};
use rustix::event::{eventfd, EventfdFlags};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// Why there is no channel.
#[derive(Debug, thiserror::Error, displaydoc::Display)]
pub enum Error {
    /// cannot listen on {0}: {1}
    Listen(SocketAddr, std::io::Error),
    /// cannot speak TLS: {0}
    Tls(#[from] rustls::Error),
    /// cannot {0}: {1}
    System(&'static str, std::io::Error),
    /// {0} has this node's own key
    OwnKey(String),
}

/// What others want of the thread.
pub(crate) enum Command {
    Use { node: usize, pin: String, is_wanted: bool },
    Want { node: usize, pin: String, event: String, is_wanted: bool },
    Issue { node: usize, pin: String, operation: String, argument: Payload, reply: Reply },
    Answer { visitor: u64, id: u64, answer: Result<Answer, String> },
    Tell { visitor: u64, told: Told },
    Part { why: String },
    Show { reply: Sender<Vec<Status>> },
    Stop,
}

/// Where they say so.
#[derive(Clone)]
pub struct Hub {
    commands: Sender<Command>,
    wake: Arc<OwnedFd>,
}

impl Hub {
    /// False: the thread has ended.
    pub(crate) fn say(&self, command: Command) -> bool {
        let is_there = self.commands.send(command).is_ok();
        // It is full only if it wakes already.
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        is_there
    }

    /// What a node asked for was done, or not.
    pub fn answer(&self, visitor: u64, id: u64, answer: Result<Answer, String>) {
        self.say(Command::Answer { visitor, id, answer });
    }

    /// An event that a node has subscribed to.
    pub fn tell(&self, visitor: u64, told: Told) {
        self.say(Command::Tell { visitor, told });
    }

    /// Whoever has done what other nodes asked for knows nothing of it any more. They are disconnected, and say again what they want when they are back.
    pub fn part(&self, why: &str) {
        self.say(Command::Part { why: why.into() });
    }
}

/// Where what comes in goes to.
pub struct To {
    /// What other nodes ask for. Of each that has asked for something it is said when it has gone, also when all ends.
    pub visits: Box<dyn FnMut(Visit) + Send>,
    /// What happens on other nodes.
    pub news: news::In,
    /// Lines for a log.
    pub notices: Box<dyn FnMut(&str) + Send>,
}

/// Connections to other nodes, and from them; ended with the value.
pub struct Channel {
    hub: Hub,
    thread: Option<JoinHandle<()>>,
    names: Vec<String>,
    patience: Duration,
    address: Option<SocketAddr>,
}

impl Channel {
    /// Listens if the file says so, and connects to all nodes that have an address. `pins`: what they may use here if they are allowed to.
    /// `to` is given what answers go through before anybody can have asked.
    ///
    /// # Errors
    /// That is not possible.
    pub fn begin(
        nodes: &Nodes,
        own: &Key,
        pins: Vec<&'static Interface>,
        to: impl FnOnce(&Hub) -> To,
    ) -> Result<Self, Error> {
        if let Some(node) = nodes.nodes.iter().find(|node| node.key == own.public()) {
            return Err(Error::OwnKey(node.name.clone()));
        }
        let now = Instant::now();
        let listen = |address: SocketAddr| {
            let listener = TcpListener::bind(address).map_err(|e| Error::Listen(address, e))?;
            listener.set_nonblocking(true).map_err(|e| Error::Listen(address, e))?;
            Ok::<_, Error>(Serving::new(listener, nodes.nodes.clone(), pins, own)?)
        };
        let serving = nodes.listen.map(listen).transpose()?;
        let address = serving.as_ref().and_then(|serving| serving.listener().local_addr().ok());
        let mut calling = Vec::new();
        for (number, node) in nodes.nodes.iter().enumerate() {
            if let Some(address) = node.address {
                calling.push(Calling::new(number, node.clone(), address, own, now)?);
            }
        }
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = eventfd(0, flags).map_err(|e| Error::System("be woken", e.into()))?;
        let (commands, receiver) = channel();
        let hub = Hub { commands, wake: Arc::new(wake) };
        let work = Work {
            nodes: nodes.clone(),
            serving,
            calling,
            wake: Arc::clone(&hub.wake),
            commands: receiver,
            to: to(&hub),
            began: SystemTime::now(),
            full_until: None,
        };
        let thread = std::thread::Builder::new().name("nodes".into()).spawn(move || work.run());
        let thread = thread.map_err(|e| Error::System("start a thread", e))?;
        let names = nodes.nodes.iter().map(|node| node.name.clone()).collect();
        Ok(Self { hub, thread: Some(thread), names, patience: nodes.patience, address })
    }

    pub fn hub(&self) -> Hub {
        self.hub.clone()
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The nodes' names, by the numbers that news has.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What modules here may have done on this node.
    pub fn remote(&self, node: usize) -> Option<Remote> {
        let name = self.names.get(node)?.clone();
        Some(Remote::new(name, node, self.hub.clone(), self.patience))
    }

    /// Ends all connections; news end then.
    pub fn stop(&self) {
        self.hub.say(Command::Stop);
    }

    /// Whether nothing is done any more, as after `stop`, or since its thread met a fault of its own.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What is known of all nodes now; of none when it has ended.
    pub fn statuses(&self) -> Vec<Status> {
        let (reply, answer) = channel();
        self.hub.say(Command::Show { reply });
        answer.recv().unwrap_or_default()
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // What it panicked with was said.
            let _ = thread.join();
        }
    }
}
