//! Nodes that use this one: they connect, prove that they have a key that is known, and ask for what they may have.

use crate::frame::{Answer, Ask, Frame, Offer, Told, MOST_OPEN};
use crate::key::PublicKey;
use crate::link::{Link, Why};
use crate::nodes::Node;
use crate::ready::Ready;
use crate::tls;
use crate::Key;
use outlast_core::Interface;
use rustls::{ServerConfig, ServerConnection};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// As many may be connected who have not said who they are, of one network and of all. The oldest has to go for another one, so that
/// who sends nothing keeps nobody out.
const MOST_STRANGERS: usize = 64;
const MOST_OF_NETWORK: usize = 16;
/// So many lines a minute may a log get of all of those, and of each node that is known.
const MOST_LINES: u32 = 8;
const MOST_LINES_OF_NODE: u32 = 32;
/// So many are let in at once.
const MOST_AT_ONCE: usize = 16;

/// The number of the next visitor.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// What a node that uses this one asks for, or that it is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visit {
    Asked { visitor: u64, id: u64, ask: Ask },
    Gone { visitor: u64 },
}

struct Visitor {
    link: Link,
    from: IpAddr,
    /// Once it is known.
    node: Option<usize>,
    open: BTreeSet<u64>,
}

pub struct Serving {
    listener: TcpListener,
    config: Arc<ServerConfig>,
    nodes: Vec<Node>,
    pins: Vec<&'static Interface>,
    /// By numbers that grow, and that none has had before in this process: whoever serves them outlives this.
    visitors: BTreeMap<u64, Visitor>,
    /// How many lines were logged of each node, or of strangers, since when.
    said: BTreeMap<Option<usize>, (u32, Instant)>,
}

/// What is worth a line of a log.
pub struct Notice(pub String);

impl Serving {
    pub fn new(
        listener: TcpListener,
        nodes: Vec<Node>,
        pins: Vec<&'static Interface>,
        own: &Key,
    ) -> Result<Self, rustls::Error> {
        let keys: Vec<PublicKey> = nodes.iter().map(|node| node.key).collect();
        let config = tls::server(own, keys)?;
        Ok(Self { listener, config, nodes, pins, visitors: BTreeMap::new(), said: BTreeMap::new() })
    }

    pub fn listener(&self) -> &TcpListener {
        &self.listener
    }

    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.visitors.values().map(|visitor| &visitor.link)
    }

    /// The nodes that are connected.
    pub fn here(&self) -> BTreeSet<usize> {
        self.visitors.values().filter(|visitor| visitor.link.is_open).filter_map(|visitor| visitor.node).collect()
    }

    /// Lets others in. False: the kernel has no room for them.
    pub fn accept(&mut self, now: Instant) -> bool {
        for _ in 0..MOST_AT_ONCE {
            let (stream, from) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return true,
                // It has gone already.
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionAborted => continue,
                Err(_) => return false,
            };
            let tls = ServerConnection::new(Arc::clone(&self.config));
            let Ok(link) = tls.map_err(std::io::Error::other).and_then(|tls| Link::new(stream, tls.into(), now)) else {
                continue;
            };
            let from = from.ip().to_canonical();
            self.make_room(from);
            let visitor = Visitor { link, from, node: None, open: BTreeSet::new() };
            self.visitors.insert(NEXT.fetch_add(1, Relaxed), visitor);
        }
        true
    }

    fn make_room(&mut self, from: IpAddr) {
        let strangers = self.visitors.iter().filter(|(_, visitor)| visitor.node.is_none());
        let strangers: Vec<_> = strangers.map(|(number, visitor)| (*number, visitor.from)).collect();
        let same: Vec<_> = strangers.iter().filter(|(_, address)| network(*address) == network(from)).collect();
        let oldest = match (same.len() >= MOST_OF_NETWORK, strangers.len() >= MOST_STRANGERS) {
            (true, _) => same.first().map(|(number, _)| *number),
            (false, true) => strangers.first().map(|(number, _)| *number),
            (false, false) => None,
        };
        if let Some(oldest) = oldest {
            self.visitors.remove(&oldest);
        }
    }

    pub fn step(
        &mut self,
        now: Instant,
        patience: Duration,
        ready: &Ready,
        visits: &mut Vec<Visit>,
        notices: &mut Vec<Notice>,
    ) {
        for number in self.visitors.keys().copied().collect::<Vec<_>>() {
            if let Err(why) = self.speak(number, now, patience, ready, visits) {
                self.end(number, &why, visits, notices);
            }
        }
    }

    fn speak(
        &mut self,
        number: u64,
        now: Instant,
        patience: Duration,
        ready: &Ready,
        visits: &mut Vec<Visit>,
    ) -> Result<(), Why> {
        let Some(visitor) = self.visitors.get_mut(&number) else { return Ok(()) };
        let frames = visitor.link.step(now, patience, ready.has(visitor.link.file()))?;
        if visitor.node.is_none() && visitor.link.is_open {
            let key = visitor.link.key();
            let node = self.nodes.iter().position(|node| Some(node.key) == key).ok_or(Why::Unknown)?;
            visitor.node = Some(node);
            self.replace(number, node, visits);
        }
        for frame in frames {
            let Frame::Ask { id, ask } = frame else { return Err(Why::Unexpected) };
            self.asked(number, id, ask, visits)?;
        }
        self.visitors.get_mut(&number).map_or(Ok(()), |visitor| visitor.link.ended())
    }

    /// A node that connects anew has lost the connection before, whether or not that is known here.
    fn replace(&mut self, number: u64, node: usize, visits: &mut Vec<Visit>) {
        let before = self.visitors.iter().find(|(other, of)| **other != number && of.node == Some(node));
        if let Some(before) = before.map(|(before, _)| *before) {
            if let Some(visitor) = self.visitors.remove(&before) {
                visitor.link.close("it has connected anew");
                visits.push(Visit::Gone { visitor: before });
            }
        }
    }

    fn asked(&mut self, number: u64, id: u64, ask: Ask, visits: &mut Vec<Visit>) -> Result<(), Why> {
        let Some(visitor) = self.visitors.get_mut(&number) else { return Ok(()) };
        let node = visitor.node.and_then(|node| self.nodes.get(node)).ok_or(Why::Unexpected)?;
        if visitor.open.len() >= MOST_OPEN {
            return Err(Why::TooMuch);
        }
        // One question may be shorter than its answer.
        if visitor.link.is_full() {
            return Err(Why::DoesNotRead);
        }
        let may = &node.may;
        let refused = match &ask {
            Ask::Describe => {
                let answer = Answer::Pins(offers(&self.pins, node));
                return match visitor.link.send(&Frame::Answer { id, answer: Ok(answer) }) {
                    true => Ok(()),
                    false => Err(Why::TooMuch),
                };
            }
            Ask::Use { pin } => (!may.has_pin(pin)).then(|| pin.clone()),
            Ask::Command { pin, operation: name, .. } | Ask::Subscribe { pin, event: name } => {
                (!may.has(pin, name)).then(|| format!("{pin}/{name}"))
            }
            Ask::Release { .. } | Ask::Unsubscribe { .. } => None,
        };
        match refused {
            Some(what) => {
                let answer = Err(format!("{what} is not for {} to use", node.name));
                visitor.link.send(&Frame::Answer { id, answer });
            }
            None if visitor.open.insert(id) => visits.push(Visit::Asked { visitor: number, id, ask }),
            None => return Err(Why::Unexpected),
        }
        Ok(())
    }

    fn end(&mut self, number: u64, why: &Why, visits: &mut Vec<Visit>, notices: &mut Vec<Notice>) {
        let Some(visitor) = self.visitors.remove(&number) else { return };
        let node = visitor.node.and_then(|node| self.nodes.get(node));
        let who = node.map_or(visitor.from.to_string(), |node| format!("{} ({})", node.name, visitor.from));
        let is_known = node.is_some();
        let reason = match why {
            Why::OtherKey => "its key is in no file here".into(),
            why => why.to_string(),
        };
        match why {
            // Who has said nothing yet may be anybody who looks whether somebody listens.
            Why::Closed | Why::Bye(_) | Why::Silent(_) if !is_known => (),
            _ if self.may_say(visitor.node) => notices.push(Notice(format!("connection of {who} ended: {reason}"))),
            _ => (),
        }
        if is_known {
            visits.push(Visit::Gone { visitor: number });
        }
        match why {
            Why::Closed | Why::Bye(_) | Why::Tls(_) | Why::OtherKey => (),
            why => visitor.link.close(&why.to_string()),
        }
    }

    /// Nobody fills a log.
    fn may_say(&mut self, of: Option<usize>) -> bool {
        let (count, since) = self.said.entry(of).or_insert_with(|| (0, Instant::now()));
        if since.elapsed() >= Duration::from_secs(60) {
            (*count, *since) = (0, Instant::now());
        }
        *count = count.saturating_add(1);
        *count <= if of.is_some() { MOST_LINES_OF_NODE } else { MOST_LINES }
    }

    /// What was asked is answered.
    pub fn answer(&mut self, number: u64, id: u64, answer: Result<Answer, String>) {
        let Some(visitor) = self.visitors.get_mut(&number) else { return };
        if visitor.open.remove(&id) && !visitor.link.send(&Frame::Answer { id, answer }) {
            visitor.link.send(&Frame::Answer { id, answer: Err("the result is too long".into()) });
        }
    }

    /// Something happened that it has subscribed to. False: it is too long to be told.
    pub fn tell(&mut self, number: u64, told: Told) -> bool {
        self.visitors.get_mut(&number).is_none_or(|visitor| visitor.link.send(&Frame::Event(told)))
    }

    /// Ends all connections.
    pub fn part(&mut self, why: &str, visits: &mut Vec<Visit>) {
        for (number, visitor) in std::mem::take(&mut self.visitors) {
            if visitor.node.is_some() {
                visits.push(Visit::Gone { visitor: number });
            }
            visitor.link.close(why);
        }
    }
}

/// Whom one person has for the asking: an address, or the 64 bits of IPv6 that one gets.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

fn offers(pins: &[&'static Interface], node: &Node) -> Vec<Offer> {
    let names = |pin: &str, all: &[outlast_core::Named]| {
        let may = all.iter().map(|named| named.name).filter(|name| node.may.has(pin, name));
        may.map(String::from).collect()
    };
    let offered = pins.iter().filter(|pin| node.may.has_pin(pin.name));
    let offer = |pin: &&'static Interface| Offer {
        name: pin.name.into(),
        what: pin.what.into(),
        operations: names(pin.name, pin.operations),
        events: names(pin.name, pin.events),
    };
    offered.map(offer).collect()
}

#[cfg(test)]
mod tests {
    use super::network;

    #[test]
    fn all_addresses_that_somebody_has_for_the_asking_count_as_one() {
        let is_one = |a: &str, b: &str| {
            let [a, b] = [a, b].map(|address| network(address.parse::<std::net::IpAddr>().unwrap().to_canonical()));
            a == b
        };
        assert!(is_one("2001:db8:0:1::7", "2001:db8:0:1:ffff::1") && !is_one("2001:db8:0:1::7", "2001:db8:0:2::7"));
        assert!(is_one("::ffff:192.0.2.1", "192.0.2.1") && !is_one("::ffff:192.0.2.1", "::ffff:192.0.2.2"));
    }
}
