//! A node that is known, and means harm: it can end its own connection, and nothing else.

use super::{add, anywhere, until, Client, Server, CALM, PATIENCE};
use crate::frame::{Ask, Frame, Told, LONGEST_NAME, MOST_OPEN};
use crate::link::{Link, Why};
use crate::{tls, Key};
use outlast_core::Payload;
use rustls::pki_types::ServerName;
use rustls::ClientConnection;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

fn link(own: &Key, address: SocketAddr, server: &Key) -> Link {
    let config = tls::client(own, server.public()).unwrap();
    let tls = ClientConnection::new(config, ServerName::IpAddress(address.ip().into())).unwrap();
    Link::new(TcpStream::connect(address).unwrap(), tls.into(), Instant::now()).unwrap()
}

/// Goes on until the other side ends it.
fn end(link: &mut Link) -> Why {
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < super::LONG, "it goes on");
        if let Err(why) = link.step(Instant::now(), super::LONG, true).and_then(|_| link.ended()) {
            return why;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Also of frames that are never written here.
fn bytes(frames: Vec<Frame>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        let frame = postcard::to_allocvec(&frame).unwrap();
        bytes.extend((frame.len() as u32).to_be_bytes());
        bytes.extend(frame);
    }
    bytes
}

fn open(link: &mut Link) {
    until("a greeting", || {
        link.step(Instant::now(), super::LONG, true).unwrap();
        link.is_open
    });
}

#[test]
fn each_kind_of_harm_ends_the_connection_and_is_logged_and_others_go_on() {
    let [own, bad, good] = [0; 3].map(|_| Key::transient().unwrap());
    let knows = [("bad", bad.public(), &["adder"][..]), ("good", good.public(), &["adder"][..])];
    let server = Server::patient(&own, anywhere(), &knows, CALM);
    let client = Client::patient(&good, server.address(), own.public(), CALM);
    client.returned();
    let ask = |id, ask| Frame::Ask { id, ask };
    let hold = || Ask::Command { pin: "adder".into(), operation: "hold".into(), argument: Payload::NONE };
    let nothing = Frame::Answer { id: 1, answer: Err(String::new()) };
    let many = (0..=MOST_OPEN as u64).map(|id| ask(id, hold())).collect();
    let harms = [
        (
            "a long name",
            bytes(vec![ask(1, Ask::Use { pin: "p".repeat(LONGEST_NAME + 1) })]),
            "a name, text or argument that is too long",
        ),
        ("an answer to nothing", bytes(vec![nothing]), "what does not belong there"),
        ("a second greeting", bytes(vec![Frame::hello()]), "what does not belong there"),
        ("too many questions", bytes(many), "too much at once"),
        ("a question twice", bytes(vec![ask(1, hold()), ask(1, hold())]), "what does not belong there"),
        ("a length beyond all", u32::MAX.to_be_bytes().to_vec(), "a frame of 4294967295 bytes"),
        ("bytes that are none", vec![0, 0, 0, 3, 0xff, 0xff, 0xff], "a frame that cannot be read"),
    ];
    for (number, (what, harm, logged)) in harms.iter().enumerate() {
        let mut link = link(&bad, server.address(), &own);
        open(&mut link);
        link.send_bytes(harm);
        let why = end(&mut link);
        assert!(matches!(why, Why::Bye(_) | Why::Closed), "{what}: {why}");
        let count = || server.notices.lock().unwrap().iter().filter(|line| line.contains("bad (")).count();
        until(what, || count() > number);
        let last = server.notices.lock().unwrap().last().cloned().unwrap_or_default();
        assert!(last.contains(logged), "{what}: {last}");
        assert_eq!(add(&client.remote(), 1, number as u64), Ok(1 + number as u64), "{what}");
    }
    // Who does so again and again fills no log.
    for _ in 0..100 {
        let mut link = link(&bad, server.address(), &own);
        open(&mut link);
        link.send_bytes(&[0, 0, 0, 1, 0xff]);
        end(&mut link);
    }
    assert_eq!(add(&client.remote(), 2, 2), Ok(4));
    let lines = server.notices.lock().unwrap().iter().filter(|line| line.contains("bad (")).count();
    assert!(lines > harms.len() && lines < 50, "{lines}");
    server.end();
}

#[test]
fn who_greets_and_is_silent_then_or_never_greets_is_let_go_and_a_second_connection_replaces_the_first() {
    let (own, bad) = (Key::transient().unwrap(), Key::transient().unwrap());
    let server = Server::begin(&own, anywhere(), &[("bad", bad.public(), &["adder"])]);
    // Connected, and nothing else.
    let silent = TcpStream::connect(server.address()).unwrap();
    silent.set_read_timeout(Some(super::LONG)).unwrap();
    let began = Instant::now();
    let mut bytes = Vec::new();
    let _ = std::io::Read::read_to_end(&mut &silent, &mut bytes);
    assert!(began.elapsed() >= PATIENCE / 2 && began.elapsed() < super::LONG);
    // Greeted, and no sign of life after that.
    let mut first = link(&bad, server.address(), &own);
    open(&mut first);
    until("it to be gone", || !server.channel.statuses()[0].uses_us);
    let silent = || server.notices.lock().unwrap().iter().any(|line| line.contains("nothing was heard from it"));
    until("a line of it", silent);
    let mut before = link(&bad, server.address(), &own);
    open(&mut before);
    let mut after = link(&bad, server.address(), &own);
    open(&mut after);
    assert!(matches!(end(&mut before), Why::Bye(_)));
    until("the second", || server.channel.statuses()[0].uses_us);
    after.step(Instant::now(), super::LONG, true).unwrap();
    server.end();
}

#[test]
fn who_does_not_read_what_it_wants_to_be_told_is_let_go() {
    let (own, bad) = (Key::transient().unwrap(), Key::transient().unwrap());
    let server = Server::begin(&own, anywhere(), &[("bad", bad.public(), &["adder"])]);
    let payload = Payload::of(&vec![0u8; 500_000]).unwrap();
    let event = || Told { pin: "adder".into(), name: "added".into(), program: None, payload: payload.clone() };
    // On a busy machine it may have been silent for too long before it has been told too much.
    until("it to be let go for that", || {
        let before = server.last.load(Relaxed);
        let mut link = link(&bad, server.address(), &own);
        open(&mut link);
        link.send(&Frame::Ask { id: 1, ask: Ask::Subscribe { pin: "adder".into(), event: "added".into() } });
        until("it to ask", || {
            let _ = link.step(Instant::now(), super::LONG, true);
            server.last.load(Relaxed) != before
        });
        (0..64).for_each(|_| server.channel.hub().tell(server.last.load(Relaxed), event()));
        until("it to be let go", || !server.channel.statuses()[0].uses_us);
        server.notices.lock().unwrap().iter().any(|line| line.contains("does not read"))
    });
    server.end();
}
