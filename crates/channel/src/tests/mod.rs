//! Two nodes in one process, and what may be between them.

mod chaos;
mod hostile;
mod ordinary;

use crate::frame::{Answer, Ask, Told};
use crate::{queue, Channel, Hub, Key, May, News, Node, Nodes, Out, PublicKey, Remote, To, Visit};
use outlast_core::{Interface, Named, Payload};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{channel, Receiver};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A node that is silent for so long has vanished.
const PATIENCE: Duration = Duration::from_millis(400);
/// One to which nothing is to happen: on a busy machine it may be silent for longer than the others.
const CALM: Duration = Duration::from_secs(5);
/// What never happens within this does not happen: for a machine that is busy with other things.
const LONG: Duration = Duration::from_secs(30);

const fn named(name: &'static str) -> Named {
    Named { name, what: "for a test" }
}

static ADDER: Interface = Interface {
    name: "adder",
    what: "adds",
    operations: &[named("add"), named("hold"), named("large")],
    events: &[named("added"), named("large")],
};

/// One that does what it is asked for: adds, and tells of it; leaves `hold` unanswered.
struct Server {
    channel: Arc<Channel>,
    notices: Arc<Mutex<Vec<String>>>,
    /// Who has asked for something last.
    last: Arc<AtomicU64>,
    worker: Option<JoinHandle<u64>>,
}

impl Server {
    fn begin(own: &Key, listen: SocketAddr, knows: &[(&str, PublicKey, &[&str])]) -> Self {
        Self::patient(own, listen, knows, PATIENCE)
    }

    fn patient(own: &Key, listen: SocketAddr, knows: &[(&str, PublicKey, &[&str])], patience: Duration) -> Self {
        let node = |(name, key, words): &(&str, PublicKey, &[&str])| {
            let mut may = May::default();
            words.iter().for_each(|word| may.add(word, &[&ADDER]).unwrap());
            Node { name: (*name).into(), key: *key, address: None, watch: false, may }
        };
        let nodes = Nodes { listen: Some(listen), patience, nodes: knows.iter().map(node).collect() };
        let (to_worker, visits) = channel();
        let notices = Arc::new(Mutex::new(Vec::new()));
        let of_channel = Arc::clone(&notices);
        let mut worker = None;
        let last = Arc::new(AtomicU64::new(u64::MAX));
        let to = |hub: &Hub| {
            let (hub, last) = (hub.clone(), Arc::clone(&last));
            worker = Some(std::thread::spawn(move || work(&visits, &hub, &last)));
            To {
                visits: Box::new(move |visit| drop(to_worker.send(visit))),
                news: queue().0,
                notices: Box::new(move |line| of_channel.lock().unwrap().push(line.into())),
            }
        };
        let channel = Arc::new(Channel::begin(&nodes, own, vec![&ADDER], to).unwrap());
        Self { channel, notices, last, worker }
    }

    fn address(&self) -> SocketAddr {
        self.channel.address().unwrap()
    }

    /// How many questions came in.
    fn end(mut self) -> u64 {
        self.channel.stop();
        let worker = self.worker.take().unwrap();
        drop(self.channel);
        worker.join().unwrap()
    }
}

/// Until the channel has ended, and with it all visits; how many questions came in.
fn work(visits: &Receiver<Visit>, hub: &Hub, last: &AtomicU64) -> u64 {
    let (mut subscribed, mut here) = (BTreeSet::new(), BTreeSet::new());
    let mut asked = 0;
    for visit in visits {
        let (visitor, id, ask) = match visit {
            Visit::Gone { visitor } => {
                subscribed.remove(&visitor);
                here.remove(&visitor);
                continue;
            }
            Visit::Asked { visitor, id, ask } => (visitor, id, ask),
        };
        here.insert(visitor);
        last.store(visitor, Relaxed);
        asked += 1;
        let event = |name: &str, payload| Told { pin: "adder".into(), name: name.into(), program: None, payload };
        let answer = match ask {
            Ask::Subscribe { .. } => {
                subscribed.insert(visitor);
                Ok(Answer::Done)
            }
            Ask::Command { operation, argument, .. } => match (operation.as_str(), argument.read::<(u64, u64)>()) {
                ("hold", _) => continue,
                ("large", _) => {
                    hub.tell(visitor, event("large", Payload::of(&vec![1u8; 1 << 20]).unwrap()));
                    Ok(Answer::Result(Payload::of(&vec![1u8; 1 << 20]).unwrap()))
                }
                (_, Ok((a, b))) => {
                    let sum = Payload::of(&a.wrapping_add(b)).unwrap();
                    subscribed.iter().for_each(|visitor| hub.tell(*visitor, event("added", sum.clone())));
                    Ok(Answer::Result(sum))
                }
                (_, Err(_)) => Err("these are no two numbers".into()),
            },
            _ => Ok(Answer::Done),
        };
        hub.answer(visitor, id, answer);
    }
    assert!(here.is_empty(), "{here:?}");
    asked
}

/// One that asks.
struct Client {
    channel: Channel,
    news: Out,
}

impl Client {
    fn begin(own: &Key, address: SocketAddr, key: PublicKey) -> Self {
        Self::patient(own, address, key, PATIENCE)
    }

    fn patient(own: &Key, address: SocketAddr, key: PublicKey, patience: Duration) -> Self {
        let node = Node { name: "there".into(), key, address: Some(address), watch: false, may: May::default() };
        let nodes = Nodes { listen: None, patience, nodes: vec![node] };
        let (to_news, news) = queue();
        let to = |_: &Hub| To { visits: Box::new(|_| ()), news: to_news, notices: Box::new(|_| ()) };
        Self { channel: Channel::begin(&nodes, own, vec![&ADDER], to).unwrap(), news }
    }

    fn remote(&self) -> Remote {
        self.channel.remote(0).unwrap()
    }

    /// Waits for news of a kind.
    fn hear<T>(&self, what: &str, is_it: impl Fn(News) -> Option<T>) -> T {
        let began = Instant::now();
        while began.elapsed() < LONG {
            if let Some(found) = self.news.within(Duration::from_millis(50)).and_then(&is_it) {
                return found;
            }
        }
        panic!("{what}: not heard; {:?}", self.channel.statuses());
    }

    fn returned(&self) {
        self.hear("returned", |news| matches!(news, News::Returned { .. }).then_some(()));
    }

    fn is_away_because(&self, why: &str) {
        until(why, || self.channel.statuses()[0].why.as_deref() == Some(why));
    }

    fn vanished(&self) -> String {
        self.hear("vanished", |news| if let News::Vanished { why, .. } = news { Some(why) } else { None })
    }
}

fn add(remote: &Remote, a: u64, b: u64) -> Result<u64, String> {
    let sum = remote.issue_cmd("adder", "add", &Payload::of(&(a, b)).unwrap())?;
    sum.read().map_err(|failure| failure.to_string())
}

fn anywhere() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A pair that knows each other.
fn pair(may: &[&str]) -> (Server, Client) {
    let (own, other) = (Key::transient().unwrap(), Key::transient().unwrap());
    let server = Server::patient(&own, anywhere(), &[("here", other.public(), may)], CALM);
    let client = Client::patient(&other, server.address(), own.public(), CALM);
    (server, client)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
