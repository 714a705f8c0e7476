//! Commands and events, and who may not have them.

use super::{add, anywhere, pair, until, Client, Server, ADDER};
use crate::{queue, Channel, Error, Hub, Key, May, News, Node, Nodes, Standing, To};
use outlast_core::Payload;

#[test]
fn commands_are_answered_and_events_are_told() {
    let (server, client) = pair(&["adder"]);
    let remote = client.remote();
    remote.want_event("adder", "added", true);
    client.returned();
    for n in 0..200 {
        assert_eq!(add(&remote, n, 1), Ok(n + 1));
        let told = client.hear("an event", |news| if let News::Told { told, .. } = news { Some(told) } else { None });
        assert_eq!((told.name.as_str(), told.payload.read()), ("added", Ok(n + 1)));
    }
    let said = remote.issue_cmd("adder", "add", &Payload::NONE);
    assert_eq!(said, Err("these are no two numbers".into()));
    remote.want_event("adder", "added", false);
    assert_eq!(add(&remote, 1, 1), Ok(2));
    // What was on its way comes before the answer, and nothing after it.
    assert_eq!(client.news.within(super::PATIENCE / 4), None);
    until("its offer", || !client.channel.statuses()[0].offers.is_empty());
    let status = client.channel.statuses().remove(0);
    assert_eq!((status.standing, status.offers[0].operations.len()), (Standing::Here, 3));
    until("a round trip", || client.channel.statuses()[0].round_trip.is_some());
    assert!(server.end() >= 202);
    client.vanished();
}

#[test]
fn who_may_be_told_may_not_command() {
    let (server, client) = pair(&["adder/added"]);
    let remote = client.remote();
    remote.want_event("adder", "added", true);
    client.returned();
    assert_eq!(add(&remote, 1, 1), Err("adder/add is not for here to use".into()));
    remote.use_pin("adder");
    remote.use_pin("proc");
    let refused = |news| if let News::Refused { what, why, .. } = news { Some((what, why)) } else { None };
    assert_eq!(client.hear("a refusal", refused), ("proc".into(), "proc is not for here to use".into()));
    until("its offer", || client.channel.statuses()[0].offers.iter().any(|offer| offer.operations.is_empty()));
    drop(client);
    // Two of the questions were let through: to use the pin, and to be told. More where a busy machine had a connection lost and made again.
    assert!((2..10).contains(&server.end()));
}

#[test]
fn what_is_not_answered_has_an_end_and_what_is_too_long_is_not_said() {
    let (_server, client) = pair(&["adder"]);
    client.returned();
    let remote = client.remote();
    let held = remote.issue_cmd("adder", "hold", &Payload::NONE);
    assert!(held.as_ref().is_err_and(|why| why.contains("has not answered within")), "{held:?}");
    assert_eq!(add(&remote, 1, 2), Ok(3));
    let large = Payload::of(&vec![0u8; 1 << 20]).unwrap();
    assert_eq!(remote.issue_cmd("adder", "add", &large), Err("the argument is too long".into()));
    assert_eq!(remote.issue_cmd("adder", "large", &Payload::NONE), Err("the result is too long".into()));
    assert_eq!(add(&remote, 2, 2), Ok(4));
}

#[test]
fn neither_side_speaks_to_another_key() {
    let [own, other, third] = [0; 3].map(|_| Key::transient().unwrap());
    let server = Server::begin(&own, anywhere(), &[("here", other.public(), &["adder"])]);
    let client = Client::begin(&other, server.address(), third.public());
    client.vanished();
    client.is_away_because("it has another key than the file says");
    let stranger = Client::begin(&third, server.address(), own.public());
    stranger.vanished();
    stranger.is_away_because("it does not know this node's key");
    assert!(add(&stranger.remote(), 1, 1).is_err_and(|why| why.starts_with("the node there is not there")));
    let known = Client::begin(&other, server.address(), own.public());
    known.returned();
    until("it to be known", || server.channel.statuses()[0].standing == Standing::Here);
    drop((client, stranger, known));
    server.end();
}

#[test]
fn a_file_that_names_the_nodes_own_key_is_refused() {
    let own = Key::transient().unwrap();
    let node = Node { name: "it".into(), key: own.public(), address: None, watch: false, may: May::default() };
    let nodes = Nodes { listen: None, patience: super::PATIENCE, nodes: vec![node] };
    let to = |_: &Hub| To { visits: Box::new(|_| ()), news: queue().0, notices: Box::new(|_| ()) };
    assert!(matches!(Channel::begin(&nodes, &own, vec![&ADDER], to), Err(Error::OwnKey(_))));
}
