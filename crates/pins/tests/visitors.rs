//! What modules of other nodes have asked of this one ends when they go, when the channel does, and when the module that serves them fails.

use outlast_channel::frame::{Answer, Ask, Told};
use outlast_channel::{queue, Channel, Hub, Key, May, News, Node, Nodes, Out, PublicKey, Standing, To, Visit};
use outlast_core::{Calls, Event, Failure, Manifest, Module, Payload};
use outlast_interfaces::oshang::Settings;
use outlast_interfaces::{schl, FOR_OTHER_NODES};
use outlast_pins::{Abroad, Heard, Machine};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::{sleep, spawn, JoinHandle};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_millis(600);
/// What never happens within this does not happen.
const LONG: Duration = Duration::from_secs(30);
const EVERY: Duration = Duration::from_millis(20);

enum Inbox {
    Hub(Option<Hub>),
    Visit(Visit),
    End,
}

/// A machine as the daemon has one, in a thread of its own.
struct Host {
    inbox: Sender<Inbox>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    fn begin(modules: &'static [Manifest]) -> Self {
        let (inbox, news) = channel();
        let thread = spawn(move || {
            let mut machine = Machine::new(&Settings::default(), modules).unwrap();
            let mut looked = Instant::now();
            loop {
                match news.recv_timeout(EVERY / 2) {
                    Ok(Inbox::Hub(hub)) => machine.speak_through(hub),
                    Ok(Inbox::Visit(visit)) => machine.visit(visit),
                    Err(RecvTimeoutError::Timeout) => (),
                    Ok(Inbox::End) | Err(_) => return,
                }
                if machine.every().is_some_and(|every| looked.elapsed() >= every) {
                    looked = Instant::now();
                    machine.look();
                }
            }
        });
        Self { inbox, thread: Some(thread) }
    }

    /// Lets this one in, which may use that.
    fn listen(&self, own: &Key, other: PublicKey, may: &[&str]) -> Channel {
        let mut of_node = May::default();
        may.iter().for_each(|word| of_node.add(word, &FOR_OTHER_NODES).unwrap());
        let node = Node { name: "visitor".into(), key: other, address: None, watch: false, may: of_node };
        let nodes = Nodes { listen: Some(anywhere()), patience: PATIENCE, nodes: vec![node] };
        let inbox = self.inbox.clone();
        let to = |hub: &Hub| {
            inbox.send(Inbox::Hub(Some(hub.clone()))).unwrap();
            let visits = Box::new(move |visit| drop(inbox.send(Inbox::Visit(visit))));
            To { visits, news: queue().0, notices: Box::new(|_| ()) }
        };
        Channel::begin(&nodes, own, FOR_OTHER_NODES.to_vec(), to).unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.inbox.send(Inbox::End);
        let ended = self.thread.take().is_some_and(|thread| thread.join().is_ok());
        assert!(ended || std::thread::panicking());
    }
}

fn anywhere() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// One that wants to be told of each look.
fn visit(own: &Key, address: SocketAddr, key: PublicKey) -> (Channel, Out) {
    let node = Node { name: "there".into(), key, address: Some(address), watch: false, may: May::default() };
    let nodes = Nodes { listen: None, patience: PATIENCE, nodes: vec![node] };
    let (news, out) = queue();
    let to = |_: &Hub| To { visits: Box::new(|_| ()), news, notices: Box::new(|_| ()) };
    let channel = Channel::begin(&nodes, own, FOR_OTHER_NODES.to_vec(), to).unwrap();
    let remote = channel.remote(0).unwrap();
    remote.use_pin(schl::NAME);
    remote.want_event(schl::NAME, schl::SWITCHED, true);
    (channel, out)
}

fn hear(out: &Out, what: &str, mut is_it: impl FnMut(&News) -> bool) {
    let began = Instant::now();
    let mut heard = Vec::new();
    while began.elapsed() < LONG {
        match out.within(EVERY) {
            Some(news) if is_it(&news) => return,
            Some(News::Told { .. }) | None => (),
            Some(other) => heard.push(other),
        }
    }
    panic!("{what}: not heard, but {heard:?}");
}

fn is_told(news: &News) -> bool {
    matches!(news, News::Told { .. })
}

/// The one that serves visitors, which panics when it is told of anything while [`FAILS`].
struct Failing(Box<dyn Module>);

static FAILS: AtomicBool = AtomicBool::new(false);

impl Module for Failing {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        self.0.start(calls)
    }

    fn protect(&mut self, calls: &mut Calls, program: &str, settings: &Payload) -> Result<(), Failure> {
        self.0.protect(calls, program, settings)
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        assert!(!FAILS.swap(false, Relaxed), "as it is to");
        self.0.on_event(calls, event)
    }
}

#[test]
fn visitors_say_again_what_they_want_when_what_serves_them_has_failed_and_are_refused_when_it_is_gone() {
    let peers: &Manifest = Box::leak(Box::new(outlast_modules::for_other_nodes()[0]));
    let make: &'static (dyn Fn() -> Box<dyn Module> + Sync) = Box::leak(Box::new(|| {
        let failing: Box<dyn Module> = Box::new(Failing((peers.make)()));
        failing
    }));
    let host = Host::begin(Box::leak(Box::new([Manifest { make, ..*peers }])));
    let [own, other] = [0; 2].map(|_| Key::transient().unwrap());
    let listening = host.listen(&own, other.public(), &["schl"]);
    let (visiting, news) = visit(&other, listening.address().unwrap(), own.public());
    let remote = visiting.remote(0).unwrap();
    let every = Payload::of(&EVERY).unwrap();
    let watch = || remote.issue_cmd(schl::NAME, schl::WATCH, &every);
    for round in 0..=peers.reloads {
        hear(&news, &format!("{round}: it is there"), |news| matches!(news, News::Returned { .. }));
        assert_eq!(watch(), Ok(Payload::NONE), "{round}");
        hear(&news, &format!("{round}: a look"), is_told);
        FAILS.store(true, Relaxed);
    }
    let is_refusal = |news: &News| matches!(news, News::Refused { what, why, .. } if what == "schl" && why == "nothing serves other nodes any more");
    hear(&news, "a refusal", is_refusal);
    assert_eq!(watch(), Err("nothing serves other nodes any more".into()));
}

#[test]
fn what_a_visitor_of_one_channel_wanted_is_not_told_to_one_of_the_next() {
    let modules: &[Manifest] = Box::leak(Box::new(outlast_modules::for_other_nodes()));
    let [own, first, second] = [0; 3].map(|_| Key::transient().unwrap());
    let host = Host::begin(modules);
    let listening = host.listen(&own, first.public(), &["schl"]);
    let (visiting, news) = visit(&first, listening.address().unwrap(), own.public());
    hear(&news, "it is there", |news| matches!(news, News::Returned { .. }));
    let every = Payload::of(&EVERY).unwrap();
    assert_eq!(visiting.remote(0).unwrap().issue_cmd(schl::NAME, schl::WATCH, &every), Ok(Payload::NONE));
    hear(&news, "a look", is_told);
    drop(listening);
    host.inbox.send(Inbox::Hub(None)).unwrap();
    drop(visiting);
    // This one may nothing that it wants.
    let listening = host.listen(&own, second.public(), &["schl/probe"]);
    let (_visiting, news) = visit(&second, listening.address().unwrap(), own.public());
    hear(&news, "a refusal", |news| {
        assert!(!is_told(news), "{news:?}");
        matches!(news, News::Refused { what, .. } if what == "schl/switched")
    });
    let began = Instant::now();
    while began.elapsed() < EVERY * 20 {
        let told = news.within(EVERY).filter(is_told);
        assert_eq!(told, None);
    }
}

#[test]
fn a_node_that_refuses_to_be_watched_is_no_reason_to_watch_none() {
    let [own, other] = [0; 2].map(|_| Key::transient().unwrap());
    let host = Host::begin(Box::leak(Box::new(outlast_modules::for_other_nodes())));
    let listening = host.listen(&own, other.public(), &[]);
    let node = Node {
        name: "there".into(),
        key: own.public(),
        address: listening.address(),
        watch: true,
        may: May::default(),
    };
    let nodes = Nodes { listen: None, patience: PATIENCE, nodes: vec![node] };
    let (news, out) = queue();
    let to = |_: &Hub| To { visits: Box::new(|_| ()), news, notices: Box::new(|_| ()) };
    let channel = Arc::new(Channel::begin(&nodes, &other, FOR_OTHER_NODES.to_vec(), to).unwrap());
    // It has said hello before anything is wanted of it.
    let began = Instant::now();
    while !channel.statuses().iter().any(|status| status.standing == Standing::Here) {
        assert!(began.elapsed() < LONG);
        sleep(EVERY);
    }
    let modules = outlast_modules::of_machine();
    let watched = ["there".to_string()];
    let mut abroad = Abroad::new(Arc::clone(&channel), out, &Settings::default(), &modules, &watched).unwrap();
    let mut heard = Vec::new();
    while !heard.contains(&Heard::Said("node there refuses schl: schl is not for visitor to use".into())) {
        assert!(began.elapsed() < LONG, "{heard:?}");
        heard.extend(abroad.wait().unwrap());
    }
    drop(listening);
    let mut vanished = |heard: &Heard| matches!(heard, Heard::Vanished(_));
    while !heard.iter().any(&mut vanished) {
        heard.extend(abroad.wait().unwrap());
    }
}

/// A node that answers each command late, but not too late.
fn slow(own: &Key, other: PublicKey) -> (Channel, Receiver<u64>, JoinHandle<()>) {
    let mut may = May::default();
    may.add(schl::NAME, &FOR_OTHER_NODES).unwrap();
    let node = Node { name: "visitor".into(), key: other, address: None, watch: false, may };
    let nodes = Nodes { listen: Some(anywhere()), patience: PATIENCE, nodes: vec![node] };
    let (to_worker, visits) = channel();
    let (to_test, subscribed) = channel();
    let mut worker = None;
    let to = |hub: &Hub| {
        let hub = hub.clone();
        worker = Some(spawn(move || {
            for visit in visits {
                let Visit::Asked { visitor, id, ask } = visit else { continue };
                match ask {
                    Ask::Subscribe { .. } => drop(to_test.send(visitor)),
                    Ask::Command { .. } => sleep(PATIENCE / 2),
                    _ => (),
                }
                hub.answer(visitor, id, Ok(Answer::Done));
            }
        }));
        To { visits: Box::new(move |visit| drop(to_worker.send(visit))), news: queue().0, notices: Box::new(|_| ()) }
    };
    let channel = Channel::begin(&nodes, own, FOR_OTHER_NODES.to_vec(), to).unwrap();
    (channel, subscribed, worker.unwrap())
}

#[test]
fn a_node_that_always_answers_late_keeps_nobody_from_being_told_of_others() {
    let [own, third, other] = [0; 3].map(|_| Key::transient().unwrap());
    let (slow, subscribed, worker) = slow(&own, other.public());
    let host = Host::begin(Box::leak(Box::new(outlast_modules::for_other_nodes())));
    let gamma = host.listen(&third, other.public(), &[]);
    let node = |name: &str, key: PublicKey, channel: &Channel| Node {
        name: name.into(),
        key,
        address: channel.address(),
        watch: true,
        may: May::default(),
    };
    let nodes = vec![node("beta", own.public(), &slow), node("gamma", third.public(), &gamma)];
    let nodes = Nodes { listen: None, patience: PATIENCE, nodes };
    let (news, out) = queue();
    let to = |_: &Hub| To { visits: Box::new(|_| ()), news, notices: Box::new(|_| ()) };
    let channel = Arc::new(Channel::begin(&nodes, &other, FOR_OTHER_NODES.to_vec(), to).unwrap());
    let settings = Settings { timeout: EVERY * 4, ..Settings::default() };
    let (modules, watched) = (outlast_modules::of_machine(), ["beta", "gamma"].map(String::from));
    let watching = spawn(move || {
        let mut abroad = Abroad::new(channel, out, &settings, &modules, &watched).unwrap();
        let began = Instant::now();
        let is_of_gamma = |heard: &Heard| matches!(heard, Heard::Vanished(vanished) if vanished.node == "gamma");
        while !abroad.wait().unwrap().iter().any(is_of_gamma) {
            assert!(began.elapsed() < LONG, "nobody was told of gamma");
        }
    });
    // On each of its processors somebody is alone in the kernel, and somebody is to wait for each of these.
    let visitor = subscribed.recv_timeout(LONG).unwrap();
    for n in 1..10u32 {
        let kernel = EVERY * n;
        let runs = Some(schl::Running { thread: 5, process: 5, user: EVERY, kernel, is_realtime: false });
        let processor = |number| schl::Processor { number, switches: 1, waiting: 0, runs };
        let look = schl::Look { at: EVERY * 2 * n, processors: (0..200).map(processor).collect(), threads: None };
        let payload = Payload::of(&look).unwrap();
        let told = Told { pin: schl::NAME.into(), name: schl::SWITCHED.into(), program: None, payload };
        slow.hub().tell(visitor, told);
    }
    sleep(PATIENCE);
    drop(gamma);
    watching.join().unwrap();
    drop(slow);
    worker.join().unwrap();
}
