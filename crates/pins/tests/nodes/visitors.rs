//! What modules of other nodes have asked of this one ends when the channel does, and when the module that serves them fails.

use crate::{Host, Inbox, CALM, EVERY, LONG};
use outlast_channel::{queue, Channel, Hub, Key, May, News, Node, Nodes, Out, PublicKey, To};
use outlast_core::{Calls, Event, Failure, Manifest, Module, Payload};
use outlast_interfaces::oshang::Settings;
use outlast_interfaces::{schl, FOR_OTHER_NODES};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// One that wants to be told of each look.
fn visit(own: &Key, address: SocketAddr, key: PublicKey) -> (Channel, Out) {
    let node = Node { name: "there".into(), key, address: Some(address), watch: false, may: May::default() };
    let nodes = Nodes { listen: None, patience: CALM, nodes: vec![node] };
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
fn a_machine_is_looked_at_as_often_as_visitors_want_it_as_long_as_they_do() {
    let modules = [outlast_modules::of_machine(), outlast_modules::for_other_nodes()].concat();
    let host = Host::begin(Box::leak(modules.into_boxed_slice()));
    let [own, other] = [0; 2].map(|_| Key::transient().unwrap());
    let looks = |every: Duration| {
        let began = Instant::now();
        while *host.every.lock().unwrap() != Some(every) {
            assert!(began.elapsed() < LONG, "{:?}, not {every:?}", host.every);
            sleep(EVERY);
        }
    };
    let usual = Settings::default().every;
    looks(usual);
    let listening = host.listen(&own, other.public(), &["schl"]);
    for _ in 0..2 {
        let (visiting, news) = visit(&other, listening.address().unwrap(), own.public());
        hear(&news, "it is there", |news| matches!(news, News::Returned { .. }));
        let every = Payload::of(&EVERY).unwrap();
        assert_eq!(visiting.remote(0).unwrap().issue_cmd(schl::NAME, schl::WATCH, &every), Ok(Payload::NONE));
        looks(EVERY);
        drop(visiting);
        looks(usual);
    }
}
