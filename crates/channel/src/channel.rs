//! The thread that all connections belong to: it waits for whichever has something, and never for one of them.

use crate::calling::{Calling, Reply};
use crate::frame::{Answer, Told};
use crate::key::Key;
use crate::news;
use crate::nodes::Nodes;
use crate::ready::Ready;
use crate::remote::Remote;
use crate::serving::{Notice, Serving, Visit};
use crate::status::{Standing, Status};
use outlast_core::{Interface, Payload};
use rustix::event::{eventfd, poll, EventfdFlags, PollFd, PollFlags, Timespec};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{channel, Receiver, Sender};
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

struct Work {
    nodes: Nodes,
    serving: Option<Serving>,
    calling: Vec<Calling>,
    wake: Arc<OwnedFd>,
    commands: Receiver<Command>,
    to: To,
    began: SystemTime,
    /// The kernel had no room for others.
    full_until: Option<Instant>,
}

/// How long others are not let in for lack of room.
const FULL: Duration = Duration::from_millis(100);

impl Work {
    fn run(mut self) {
        let patience = self.nodes.patience;
        let tick = (patience / 16).clamp(Duration::from_millis(5), Duration::from_millis(250));
        loop {
            let ready = self.wait(tick);
            let now = Instant::now();
            let (mut news, mut visits, mut notices) = (Vec::new(), Vec::new(), Vec::new());
            let is_over = self.obey(&mut visits);
            if is_over {
                break;
            }
            for calling in &mut self.calling {
                calling.step(now, patience, &ready, &mut news);
            }
            if let Some(serving) = &mut self.serving {
                if ready.has(serving.listener().as_fd()) && !serving.accept(now) {
                    self.full_until = Some(now + FULL);
                }
                serving.step(now, patience, &ready, &mut visits, &mut notices);
            }
            news.into_iter().for_each(|news| self.to.news.push(news));
            visits.into_iter().for_each(|visit| (self.to.visits)(visit));
            notices.iter().for_each(|Notice(line)| (self.to.notices)(line));
        }
        let why = "it ends, or reads its files again";
        self.calling.into_iter().for_each(|calling| calling.close(why));
        if let Some(mut serving) = self.serving {
            let mut visits = Vec::new();
            serving.part(why, &mut visits);
            visits.into_iter().for_each(self.to.visits);
        }
    }

    /// Until there is something to do.
    fn wait(&mut self, tick: Duration) -> Ready {
        if self.full_until.is_some_and(|until| Instant::now() >= until) {
            self.full_until = None;
        }
        let mut files = vec![PollFd::new(&*self.wake, PollFlags::IN)];
        if let Some(serving) = self.serving.as_ref().filter(|_| self.full_until.is_none()) {
            files.push(PollFd::from_borrowed_fd(serving.listener().as_fd(), PollFlags::IN));
        }
        for (file, wants) in self.calling.iter().filter_map(Calling::poll) {
            files.push(PollFd::from_borrowed_fd(file, wants));
        }
        for link in self.serving.iter().flat_map(Serving::links) {
            files.push(PollFd::from_borrowed_fd(link.file(), link.wants()));
        }
        let timeout = Timespec { tv_sec: tick.as_secs() as i64, tv_nsec: tick.subsec_nanos().into() };
        // Whatever ends the wait, all of them are looked at.
        let ready = match poll(&mut files, Some(&timeout)) {
            Ok(_) => Ready::of(&files),
            Err(_) => Ready::default(),
        };
        if ready.has(self.wake.as_fd()) {
            let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        }
        ready
    }

    /// Does what others want. True: to stop.
    fn obey(&mut self, visits: &mut Vec<Visit>) -> bool {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Stop => return true,
                Command::Use { node, pin, is_wanted } => {
                    if let Some(calling) = self.of(node) {
                        calling.want_pin(pin, is_wanted);
                    }
                }
                Command::Want { node, pin, event, is_wanted } => {
                    if let Some(calling) = self.of(node) {
                        calling.want_event(pin, event, is_wanted);
                    }
                }
                Command::Issue { node, pin, operation, argument, reply } => {
                    if let Some(calling) = self.of(node) {
                        calling.command(pin, operation, argument, reply);
                    }
                }
                Command::Answer { visitor, id, answer } => {
                    if let Some(serving) = &mut self.serving {
                        serving.answer(visitor, id, answer);
                    }
                }
                Command::Part { why } => {
                    if let Some(serving) = &mut self.serving {
                        serving.part(&why, visits);
                    }
                }
                // Who asked may not wait for it any more.
                Command::Show { reply } => drop(reply.send(self.statuses())),
                Command::Tell { visitor, told } => {
                    let what = format!("{}/{}", told.pin, told.name);
                    let is_told = self.serving.as_mut().is_none_or(|serving| serving.tell(visitor, told));
                    if !is_told {
                        (self.to.notices)(&format!("an event {what} is too long to be told to another node"));
                    }
                }
            }
        }
        false
    }

    /// A node without an address cannot be used; whoever waits for an answer learns so as its sender is dropped.
    fn of(&mut self, node: usize) -> Option<&mut Calling> {
        self.calling.iter_mut().find(|calling| calling.number() == node)
    }

    fn statuses(&self) -> Vec<Status> {
        let here = self.serving.as_ref().map(Serving::here).unwrap_or_default();
        let status = |(number, node): (usize, &crate::nodes::Node)| {
            let used = self.calling.iter().find(|calling| calling.number() == number).map(Calling::status);
            let uses_us = here.contains(&number);
            let awaited = || Status {
                node: node.name.clone(),
                address: None,
                key: node.key.to_string(),
                standing: if uses_us { Standing::Here } else { Standing::Awaited },
                since: self.began,
                round_trip: None,
                why: None,
                offers: Vec::new(),
                may: node.may.words(),
                uses_us,
            };
            Status { uses_us, ..used.unwrap_or_else(awaited) }
        };
        self.nodes.nodes.iter().enumerate().map(status).collect()
    }
}
