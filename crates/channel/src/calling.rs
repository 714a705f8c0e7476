//! A node that is used from here: it is connected to again and again, and told again what is wanted of it.

use crate::frame::{Answer, Ask, Frame, Offer, Told, MOST_OPEN};
use crate::link::{Link, Why};
use crate::nodes::Node;
use crate::ready::Ready;
use crate::status::{Standing, Status};
use crate::tls;
use crate::Key;
use outlast_core::Payload;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::Sender;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// After the first failure; doubled with each.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// And at most so many patiences.
const LONGEST_PAUSE: u32 = 2;

/// As much may wait until a node has answered what was asked before.
const MOST_BACKLOG: usize = 1024;

/// What whoever asked is told: the result, or why there is none.
pub type Reply = Sender<Result<Payload, String>>;

/// What happened to a node, or there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It has been silent for a patience.
    Vanished { node: usize, why: String },
    /// It is spoken to, for the first time or again: what it was asked for before may be forgotten there. After so long.
    Returned { node: usize, after: Duration },
    /// An event that was subscribed to.
    Told { node: usize, told: Told },
    /// It refuses something that is wanted of it.
    Refused { node: usize, what: String, why: String },
    /// So many events were lost because nobody took them.
    Lost { node: usize, count: u64 },
}

enum State {
    Waiting { until: Instant },
    Connecting { socket: OwnedFd, since: Instant },
    Up(Box<Link>),
}

enum Asked {
    Describe,
    Want(String),
    Of(Reply),
}

pub struct Calling {
    number: usize,
    node: Node,
    address: SocketAddr,
    config: Arc<ClientConfig>,
    state: State,
    pause: Duration,
    pins: BTreeSet<String>,
    events: BTreeSet<(String, String)>,
    open: BTreeMap<u64, Asked>,
    backlog: VecDeque<(Asked, Ask)>,
    next: u64,
    offers: Vec<Offer>,
    heard: Instant,
    has_vanished: bool,
    since: SystemTime,
    why: Option<Why>,
}

impl Calling {
    pub fn new(number: usize, node: Node, address: SocketAddr, own: &Key, now: Instant) -> Result<Self, rustls::Error> {
        let config = tls::client(own, node.key)?;
        Ok(Self {
            number,
            node,
            address,
            config,
            state: State::Waiting { until: now },
            pause: FIRST_PAUSE,
            pins: BTreeSet::new(),
            events: BTreeSet::new(),
            open: BTreeMap::new(),
            backlog: VecDeque::new(),
            next: 0,
            offers: Vec::new(),
            heard: now,
            has_vanished: false,
            since: SystemTime::now(),
            why: None,
        })
    }

    /// What to wait for.
    pub fn poll(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match &self.state {
            State::Waiting { .. } => None,
            State::Connecting { socket, .. } => Some((socket.as_fd(), PollFlags::OUT)),
            State::Up(link) => Some((link.file(), link.wants())),
        }
    }

    pub fn number(&self) -> usize {
        self.number
    }

    fn is_open(&self) -> bool {
        matches!(&self.state, State::Up(link) if link.is_open)
    }

    pub fn status(&self) -> Status {
        let link = if let State::Up(link) = &self.state { Some(link) } else { None };
        Status {
            node: self.node.name.clone(),
            address: Some(self.address.to_string()),
            key: self.node.key.to_string(),
            standing: match (self.is_open(), self.has_vanished) {
                (true, _) => Standing::Here,
                (false, true) => Standing::Vanished,
                (false, false) => Standing::Sought,
            },
            since: self.since,
            round_trip: link.and_then(|link| link.round_trip),
            why: self.why.as_ref().map(Why::to_string).filter(|_| !self.is_open()),
            offers: self.offers.clone(),
            may: self.node.may.words(),
            uses_us: false,
        }
    }

    /// Is used from now on, or no longer.
    pub fn want_pin(&mut self, pin: String, is_wanted: bool) {
        let ask = match is_wanted {
            true => Ask::Use { pin: pin.clone() },
            false => Ask::Release { pin: pin.clone() },
        };
        match is_wanted {
            true => self.pins.insert(pin.clone()),
            false => self.pins.remove(&pin),
        };
        if self.is_open() {
            self.ask(Asked::Want(pin), ask);
        }
    }

    /// Is to be told of, or no longer.
    pub fn want_event(&mut self, pin: String, event: String, is_wanted: bool) {
        let name = format!("{pin}/{event}");
        let of = (pin.clone(), event.clone());
        let ask = match is_wanted {
            true => Ask::Subscribe { pin, event },
            false => Ask::Unsubscribe { pin, event },
        };
        match is_wanted {
            true => self.events.insert(of),
            false => self.events.remove(&of),
        };
        if self.is_open() {
            self.ask(Asked::Want(name), ask);
        }
    }

    /// Has an operation performed there.
    pub fn command(&mut self, pin: String, operation: String, argument: Payload, reply: Reply) {
        if self.is_open() {
            self.ask(Asked::Of(reply), Ask::Command { pin, operation, argument });
        } else {
            let why = self.why.as_ref().map_or("it was never spoken to".into(), Why::to_string);
            let _ = reply.send(Err(format!("the node {} is not there: {why}", self.node.name)));
        }
    }

    fn ask(&mut self, asked: Asked, ask: Ask) {
        let State::Up(link) = &mut self.state else { return };
        if self.open.len() >= MOST_OPEN / 2 {
            self.backlog.push_back((asked, ask));
            return;
        }
        self.next += 1;
        match link.send(&Frame::Ask { id: self.next, ask }) {
            true => drop(self.open.insert(self.next, asked)),
            false => {
                if let Asked::Of(reply) = asked {
                    let _ = reply.send(Err("the argument is too long".into()));
                }
            }
        }
    }

    /// Goes on; what has happened goes to `news`.
    pub fn step(&mut self, now: Instant, patience: Duration, ready: &Ready, news: &mut Vec<News>) {
        let went = match &mut self.state {
            State::Waiting { until } if now < *until => Ok(()),
            State::Waiting { .. } => self.connect(now),
            State::Connecting { .. } => self.is_connected(now, patience),
            State::Up(_) => self.speak(now, patience, ready, news),
        };
        if let Err(why) = went {
            self.lose(why, now, patience);
        }
        if !self.is_open() && !self.has_vanished && now.duration_since(self.heard) >= patience {
            (self.has_vanished, self.since) = (true, SystemTime::now());
            let why = self.why.as_ref().map_or("it does not answer".into(), Why::to_string);
            news.push(News::Vanished { node: self.number, why });
        }
    }

    /// Fails at once whatever depended on it, and tries again later.
    fn lose(&mut self, why: Why, now: Instant, patience: Duration) {
        let said = format!("the node {} is not there: {why}", self.node.name);
        let asked = std::mem::take(&mut self.open).into_values();
        let asked = asked.chain(std::mem::take(&mut self.backlog).into_iter().map(|(asked, _)| asked));
        for asked in asked {
            if let Asked::Of(reply) = asked {
                let _ = reply.send(Err(said.clone()));
            }
        }
        if let State::Up(link) = &self.state {
            if link.is_open {
                self.heard = link.heard();
                self.since = SystemTime::now();
                if link.age(now) >= patience {
                    self.pause = FIRST_PAUSE;
                }
            }
        }
        self.why = Some(why);
        self.state = State::Waiting { until: now + self.pause };
        self.pause = (self.pause * 2).min(patience * LONGEST_PAUSE);
    }

    fn connect(&mut self, now: Instant) -> Result<(), Why> {
        let failed = |e: Errno| Why::System(std::io::Error::from(e).kind());
        let family = if self.address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(family, SocketType::STREAM, flags, None).map_err(failed)?;
        match net::connect(&socket, &self.address) {
            Ok(()) | Err(Errno::INPROGRESS) => {
                self.state = State::Connecting { socket, since: now };
                Ok(())
            }
            Err(e) => Err(failed(e)),
        }
    }

    fn is_connected(&mut self, now: Instant, patience: Duration) -> Result<(), Why> {
        let State::Connecting { socket, since } = &self.state else { return Ok(()) };
        let failed = |e: Errno| Why::System(std::io::Error::from(e).kind());
        net::sockopt::socket_error(socket).map_err(failed)?.map_err(failed)?;
        match net::getpeername(socket) {
            Ok(_) => (),
            Err(Errno::NOTCONN) if now.duration_since(*since) < patience => return Ok(()),
            Err(Errno::NOTCONN) => return Err(Why::Silent(patience)),
            Err(e) => return Err(failed(e)),
        }
        let stream = TcpStream::from(socket.try_clone().map_err(|e| Why::System(e.kind()))?);
        // Nothing is sent of it.
        let name = ServerName::IpAddress(self.address.ip().into());
        let tls = ClientConnection::new(Arc::clone(&self.config), name).map_err(|e| Why::Tls(e.to_string()))?;
        let link = Link::new(stream, tls.into(), now).map_err(|e| Why::System(e.kind()))?;
        self.state = State::Up(Box::new(link));
        Ok(())
    }

    fn speak(&mut self, now: Instant, patience: Duration, ready: &Ready, news: &mut Vec<News>) -> Result<(), Why> {
        let State::Up(link) = &mut self.state else { return Ok(()) };
        let was_open = link.is_open;
        if self.backlog.len() > MOST_BACKLOG {
            return Err(Why::DoesNotAnswer);
        }
        let frames = link.step(now, patience, ready.has(link.file()))?;
        if link.is_open && !was_open {
            self.begin(now, news);
        }
        for frame in frames {
            match frame {
                Frame::Answer { id, answer } => self.answered(id, answer, news)?,
                Frame::Event(told) => {
                    // One that was on its way when it was wanted no more.
                    if self.events.contains(&(told.pin.clone(), told.name.clone())) {
                        news.push(News::Told { node: self.number, told });
                    }
                }
                _ => return Err(Why::Unexpected),
            }
        }
        match &mut self.state {
            State::Up(link) => link.ended(),
            _ => Ok(()),
        }
    }

    /// It is there, and knows nothing of what was wanted.
    fn begin(&mut self, now: Instant, news: &mut Vec<News>) {
        (self.has_vanished, self.since, self.why) = (false, SystemTime::now(), None);
        self.ask(Asked::Describe, Ask::Describe);
        for pin in self.pins.clone() {
            self.ask(Asked::Want(pin.clone()), Ask::Use { pin });
        }
        for (pin, event) in self.events.clone() {
            self.ask(Asked::Want(format!("{pin}/{event}")), Ask::Subscribe { pin, event });
        }
        news.push(News::Returned { node: self.number, after: now.duration_since(self.heard) });
    }

    fn answered(&mut self, id: u64, answer: Result<Answer, String>, news: &mut Vec<News>) -> Result<(), Why> {
        let asked = self.open.remove(&id).ok_or(Why::Unexpected)?;
        match (asked, answer) {
            (Asked::Describe, Ok(Answer::Pins(offers))) => self.offers = offers,
            (Asked::Want(_), Ok(Answer::Done)) => (),
            (Asked::Want(what), Err(why)) => news.push(News::Refused { node: self.number, what, why }),
            // Who asked may not wait for it any more.
            (Asked::Of(reply), Ok(Answer::Done)) => drop(reply.send(Ok(Payload::NONE))),
            (Asked::Of(reply), Ok(Answer::Result(payload))) => drop(reply.send(Ok(payload))),
            (Asked::Of(reply), Err(why)) => drop(reply.send(Err(why))),
            _ => return Err(Why::Unexpected),
        }
        while self.open.len() < MOST_OPEN / 2 {
            let Some((asked, ask)) = self.backlog.pop_front() else { break };
            self.ask(asked, ask);
        }
        Ok(())
    }

    pub fn close(self, why: &str) {
        if let State::Up(link) = self.state {
            link.close(why);
        }
    }
}
