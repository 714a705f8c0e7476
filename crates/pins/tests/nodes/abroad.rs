//! Nodes that are watched from here, and are not as they should be.

use crate::{anywhere, Host, EVERY, LONG, PATIENCE};
use outlast_channel::frame::{Answer, Ask, Told};
use outlast_channel::{queue, Channel, Hub, Key, May, Node, Nodes, PublicKey, Standing, To, Visit};
use outlast_core::Payload;
use outlast_interfaces::oshang::Settings;
use outlast_interfaces::{schl, FOR_OTHER_NODES};
use outlast_pins::{Abroad, Heard};
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::thread::{sleep, spawn, JoinHandle};
use std::time::Instant;

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
        let runs = Some(schl::Running { thread: 5, process: 5, user: EVERY, kernel, is_realtime: false, yields: 0 });
        let processor = |number| schl::Processor { number, switches: 1, waiting: 0, runs, is_preempted: false };
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
