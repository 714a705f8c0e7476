//! What it takes to use a pin of another node over the loopback: a command and its answer, and an event, beside a byte that goes there and back over TCP as it is.

use crate::failure::{Failure, Outcome, Tried};
use crate::measurement::{Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::workshop::Workshop;
use outlast_channel::frame::{Answer, Ask, Told};
use outlast_channel::{queue, Channel, Hub, Key, May, News, Node, Nodes as File, Out, To, Visit};
use outlast_core::Payload;
use outlast_interfaces::schl;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

pub struct Nodes;

const COMMAND: &str = "node-command";
const EVENT: &str = "node-event";
const TIMES: u32 = 2000;
const PATIENCE: Duration = Duration::from_secs(5);

impl Measurement for Nodes {
    fn name(&self) -> String {
        "pins of another node".into()
    }

    fn promises(&self) -> Vec<Promise> {
        let of = |id, what| Promise::new(id, what, Unit::Microseconds, Relation::Whole, 100.0);
        vec![
            of(COMMAND, "a command to a pin of another node, over the loopback, and its answer"),
            of(EVENT, "an event of a pin of another node, until it is there"),
        ]
    }

    fn rounds(&self) -> usize {
        9
    }

    fn round(&mut self, _number: usize, _workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let own = Key::transient().map_err(std::io::Error::from).tried("make a key")?;
        let other = Key::transient().map_err(std::io::Error::from).tried("make a key")?;
        let mut may = May::default();
        may.add(schl::NAME, &[&schl::INTERFACE]).map_err(Failure::NotHere)?;
        let node = Node { name: "other".into(), key: other.public(), address: None, watch: false, may };
        let listen = Some(std::net::SocketAddr::from(([127, 0, 0, 1], 0)));
        let (server, visits, _) = begin(&File { listen, patience: PATIENCE, nodes: vec![node.clone()] }, &own)?;
        let hub = server.hub();
        let worker = thread::spawn(move || serve(&visits, &hub));
        let node = Node { key: own.public(), address: server.address(), may: May::default(), ..node };
        let (client, _, news) = begin(&File { listen: None, patience: PATIENCE, nodes: vec![node] }, &other)?;
        let remote = client.remote(0).ok_or_else(|| Failure::NotHere("there is no such node".into()))?;
        remote.want_event(schl::NAME, schl::SWITCHED, true);
        while !matches!(news.within(PATIENCE), Some(News::Returned { .. })) {}
        let argument = Payload::of(&Duration::from_millis(100)).map_err(|e| Failure::NotHere(e.to_string()))?;
        let command = |operation: &str| remote.issue_cmd(schl::NAME, operation, &argument).map_err(Failure::NotHere);
        let commands = each(|| command(schl::WATCH).map(drop))?;
        // The probe is answered after the event has been sent.
        let events = each(|| {
            command(schl::PROBE)?;
            let told = news.within(PATIENCE).ok_or_else(|| Failure::NotHere("no event came".into()))?;
            matches!(told, News::Told { .. }).then_some(()).ok_or_else(|| Failure::NotHere(format!("{told:?}")))
        })?;
        drop(client);
        drop(server);
        let _ = worker.join();
        let native = tcp()?;
        collected.add(COMMAND, Some(native), commands);
        collected.add(EVENT, Some(native), events);
        Ok(())
    }
}

fn begin(file: &File, own: &Key) -> Outcome<(Channel, mpsc::Receiver<Visit>, Out)> {
    let (to_visits, visits) = mpsc::channel();
    let (to_news, news) = queue();
    let visits_to = Box::new(move |visit| drop(to_visits.send(visit)));
    let to = |_: &Hub| To { visits: visits_to, news: to_news, notices: Box::new(|_| ()) };
    let channel = Channel::begin(file, own, vec![&schl::INTERFACE], to);
    Ok((channel.map_err(|e| Failure::NotHere(e.to_string()))?, visits, news))
}

/// As a node does whose pins take no time.
fn serve(visits: &mpsc::Receiver<Visit>, hub: &Hub) {
    for visit in visits {
        let Visit::Asked { visitor, id, ask } = visit else { return };
        if matches!(&ask, Ask::Command { operation, .. } if operation == schl::PROBE) {
            let (pin, name) = (schl::NAME.into(), schl::SWITCHED.into());
            hub.tell(visitor, Told { pin, name, program: None, payload: Payload::NONE });
        }
        hub.answer(visitor, id, Ok(Answer::Done));
    }
}

/// Microseconds that each takes.
fn each(mut one: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let began = Instant::now();
    for _ in 0..TIMES {
        one()?;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES))
}

fn tcp() -> Outcome<f64> {
    let listener = TcpListener::bind("127.0.0.1:0").tried("listen")?;
    let mut here = TcpStream::connect(listener.local_addr().tried("listen")?).tried("connect")?;
    let (mut there, _) = listener.accept().tried("accept")?;
    here.set_nodelay(true).and_then(|()| there.set_nodelay(true)).tried("send at once")?;
    let echo = thread::spawn(move || {
        let mut byte = [0];
        while there.read_exact(&mut byte).and_then(|()| there.write_all(&byte)).is_ok() {}
    });
    let mut byte = [7];
    let took = each(|| here.write_all(&byte).and_then(|()| here.read_exact(&mut byte)).tried("send a byte"));
    drop(here);
    let _ = echo.join();
    took
}
