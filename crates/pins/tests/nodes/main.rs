//! Nodes in one process, and what microkernels make of each other.

mod abroad;
mod visitors;

use outlast_channel::{queue, Channel, Hub, Key, May, Node, Nodes, PublicKey, To, Visit};
use outlast_core::Manifest;
use outlast_interfaces::oshang::Settings;
use outlast_interfaces::FOR_OTHER_NODES;
use outlast_pins::Machine;
use std::net::SocketAddr;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{spawn, JoinHandle};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_millis(600);
/// Of those that nothing is to happen to: on a busy machine they may be silent for longer than the others.
const CALM: Duration = Duration::from_secs(5);
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
    /// How often it looks.
    every: Arc<Mutex<Option<Duration>>>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    fn begin(modules: &'static [Manifest]) -> Self {
        let (inbox, news) = channel();
        let every = Arc::new(Mutex::new(None));
        let shown = Arc::clone(&every);
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
                *shown.lock().unwrap() = machine.every();
                if machine.every().is_some_and(|every| looked.elapsed() >= every) {
                    looked = Instant::now();
                    machine.look();
                }
            }
        });
        Self { inbox, every, thread: Some(thread) }
    }

    /// Lets this one in, which may use that.
    fn listen(&self, own: &Key, other: PublicKey, may: &[&str]) -> Channel {
        let mut of_node = May::default();
        may.iter().for_each(|word| of_node.add(word, &FOR_OTHER_NODES).unwrap());
        let node = Node { name: "visitor".into(), key: other, address: None, watch: false, may: of_node };
        let nodes = Nodes { listen: Some(anywhere()), patience: CALM, nodes: vec![node] };
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
