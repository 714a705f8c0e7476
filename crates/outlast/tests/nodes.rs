//! Two machines that know each other: what of one is starved is told of by the other, one that is gone is told of, and nobody else gets in.

#[path = "nodes/network.rs"]
mod network;
mod support;

use network::{Network, Node};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{said, until};

const THRESHOLD: [&str; 4] = ["--oshang", "only", "--oshang-threshold", "150ms"];

/// Of a node that watches another one.
fn watches(node: &str, other: &Node) -> String {
    format!("[node.{node}]\nkey = \"{}\"\naddress = \"{}\"\nwatch = true\n", other.key, other.address())
}

/// Of a node that is used by another one.
fn lets(node: &str, other: &Node, may: &str) -> String {
    format!("[node.{node}]\nkey = \"{}\"\nmay = [{may}]\n", other.key)
}

/// Alpha, which watches beta.
fn pair<'a>(network: &'a Network, may: &str) -> (Node<'a>, Node<'a>) {
    let (alpha, beta) = (network.node(0), network.node(1));
    alpha.knows(&watches("beta", &beta));
    beta.knows(&lets("alpha", &alpha, may));
    (alpha, beta)
}

/// Keeps others from a processor for less than a second.
fn starve(network: &Network) {
    // SAFETY: plain system call.
    let last = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) } - 1;
    let program = network.home.file("hog");
    if !program.exists() {
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oshang/hog.c");
        let output = Command::new("gcc").args(["-O2", "-o"]).arg(&program).arg(source).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    let mut usual = Command::new(&program).args([&last.to_string(), "1500", "usual"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(Command::new(&program).args([&last.to_string(), "800", "fifo"]).status().unwrap().success());
    usual.wait().unwrap();
}

/// What alpha is to be told begins some time after beta is there, and what it takes for usual is learnt first.
fn starve_until_said(network: &Network, alpha: &Node, times: usize) {
    for _ in 0..10 {
        starve(network);
        if alpha.count("node beta: processor ") >= times {
            return;
        }
    }
    alpha.await_said("node beta: processor ", times);
}

fn is_watchable() -> bool {
    // SAFETY: plain system call.
    let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    if processors < 2 {
        println!("skipped: needs a processor that nobody starves");
    }
    processors >= 2
}

#[test]
fn what_is_starved_there_is_told_of_here_also_where_nobody_watches_there() {
    let Some(network) = Network::lay().filter(|_| is_watchable()) else { return };
    let (mut alpha, mut beta) = pair(&network, "\"schl/watch\", \"schl/switched\"");
    // It looks at its processors because alpha has it do so.
    beta.begin(&["--oshang", "no"]);
    alpha.begin(&THRESHOLD);
    alpha.await_said("node beta is there", 1);
    if alpha.count("not processors") > 0 {
        return println!("skipped: {}", alpha.log());
    }
    starve_until_said(&network, &alpha, 1);
    assert!(alpha.log().contains("does not switch: real-time thread "), "{}", alpha.log());
    assert_eq!(beta.count("does not switch"), 0, "{}", beta.log());
    let other = alpha.await_other("here");
    until("a round trip", || alpha.other()["round_trip_us"].as_f64().is_some_and(|us| us > 0.0));
    assert_eq!((&other["name"], &other["pins"]), (&"beta".into(), &serde_json::json!(["schl"])));
    let pins = alpha.pins_of("beta");
    assert_eq!(
        (pins.len(), &pins[0]["name"], &pins[0]["operations"], &pins[0]["events"]),
        (1, &"beta/schl".into(), &serde_json::json!(["watch"]), &serde_json::json!(["switched"]))
    );
    assert_eq!((&beta.await_other("here")["uses_us"], alpha.count("refuse")), (&true.into(), 0), "{}", alpha.log());
    // It has begun anew, and nothing of this is asked for by hand.
    beta.kill();
    alpha.await_said("node beta has vanished", 1);
    beta.begin(&["--oshang", "no"]);
    alpha.await_said("node beta is there", 2);
    starve_until_said(&network, &alpha, 2);
}

#[test]
fn a_node_that_is_killed_stopped_or_cut_off_has_vanished_and_returns() {
    let Some(network) = Network::lay() else { return };
    let (mut alpha, mut beta) = pair(&network, "\"schl\"");
    alpha.begin(&THRESHOLD);
    // Before it has ever been there.
    alpha.await_said("node beta has vanished", 1);
    beta.begin(&THRESHOLD);
    alpha.await_said("node beta is there", 1);
    for round in 1..=3 {
        let before = (3 * round - 2, 3 * round - 1);
        beta.signal(libc::SIGSTOP);
        alpha.await_said("node beta has vanished", before.0 + 1);
        alpha.await_why("nothing was heard from it for 500ms");
        beta.signal(libc::SIGCONT);
        alpha.await_said("node beta is there", before.0 + 1);
        network.cable(false);
        alpha.await_said("node beta has vanished", before.1 + 1);
        // Its side of the connection is not left half open.
        beta.await_said("nothing was heard from it", round);
        network.cable(true);
        alpha.await_said("node beta is there", before.1 + 1);
        beta.kill();
        alpha.await_said("node beta has vanished", before.1 + 2);
        beta.begin(&THRESHOLD);
        alpha.await_said("node beta is there", before.1 + 2);
    }
    // One that ends is told apart, and vanishes like any other.
    beta.signal(libc::SIGTERM);
    alpha.await_said("has vanished", 11);
    alpha.await_why("connection refused");
    assert_eq!(alpha.count("a module failed"), 0, "{}", alpha.log());
}

#[test]
fn who_has_another_key_or_is_not_known_or_may_nothing_is_refused_until_the_file_says_otherwise() {
    let Some(network) = Network::lay() else { return };
    let (mut alpha, mut beta) = pair(&network, "\"schl/watch\"");
    let stranger = network.home.outlast(["node", "key", "--file"]).arg(network.home.file("other")).output().unwrap();
    let stranger = String::from_utf8(stranger.stdout).unwrap();
    alpha.knows(&watches("beta", &beta).replace(&beta.key, stranger.trim()));
    alpha.begin(&THRESHOLD);
    beta.begin(&THRESHOLD);
    alpha.await_said("node beta has vanished", 1);
    alpha.await_why("it has another key than the file says");
    // Now it knows beta, and beta does not know it.
    beta.knows(&lets("alpha", &alpha, "\"schl\"").replace(&alpha.key, stranger.trim()));
    beta.signal(libc::SIGHUP);
    beta.await_said("nodes: 1", 2);
    alpha.knows(&watches("beta", &beta));
    alpha.signal(libc::SIGHUP);
    alpha.await_said("node beta has vanished", 2);
    alpha.await_why("it does not know this node's key");
    beta.await_said("its key is in no file here", 1);
    until("a list", || beta.other()["uses_us"] == false);
    assert_eq!(alpha.count("is there"), 0, "{}", alpha.log());
    // Beta knows it, and does not let it have what it wants.
    beta.knows(&lets("alpha", &alpha, "\"schl/watch\""));
    beta.signal(libc::SIGHUP);
    alpha.await_said("node beta refuses schl/switched: schl/switched is not for alpha to use", 1);
    beta.knows(&lets("alpha", &alpha, ""));
    beta.signal(libc::SIGHUP);
    alpha.await_said("node beta refuses schl: schl is not for alpha to use", 1);
    until("no pins", || alpha.pins_of("beta").is_empty() && alpha.other()["state"] == "here");
    // What is wrong changes nothing.
    let there = alpha.count("is there");
    beta.knows("[node.alpha]\nkey = \"?\"\n");
    beta.signal(libc::SIGHUP);
    beta.await_said("nodes.toml:4: a key is what", 1);
    // On a busy machine either may be silent for too long now and then.
    alpha.await_other("here");
    beta.knows(&lets("alpha", &alpha, "\"schl/switched\""));
    beta.signal(libc::SIGHUP);
    alpha.await_said("node beta is there", there + 1);
    until("its pins", || alpha.pins_of("beta").iter().any(|pin| pin["events"] == serde_json::json!(["switched"])));
}

/// Connects from alpha's side, by a program that the shell of any machine has; writes these bytes and reads what comes.
fn python(network: &Network, script: &str) -> String {
    let mut child = network.at(0, "python3").arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    text
}

#[test]
fn strangers_who_send_garbage_nothing_or_too_many_greetings_keep_nobody_out() {
    let Some(network) = Network::lay() else { return };
    let (mut alpha, mut beta) = pair(&network, "\"schl\"");
    beta.begin(&THRESHOLD);
    alpha.begin(&THRESHOLD);
    alpha.await_said("node beta is there", 1);
    let address = format!("at = ('10.76.7.2', {})\n", 7607);
    let garbage = "
import os, random, socket
random.seed(7)
for n in range(300):
    s = socket.create_connection(at, 10)
    size = random.choice([0, 1, 5, 100, 5000, 200000])
    try:
        s.sendall(random.choice([b'', b'\\x16\\x03\\x01\\x40\\x00', b'GET / HTTP/1.0\\r\\n\\r\\n']) + random.randbytes(size))
        s.settimeout(10)
        while s.recv(4096): pass
    except OSError as e:
        assert not isinstance(e, TimeoutError), n
    s.close()
print('done')
";
    assert_eq!(python(&network, &(address.clone() + garbage)), "done\n");
    // Each of these is connected, and says a byte now and then; beta lets all of them go in time.
    let slow = "
import socket, time
all = []
for n in range(200):
    try: all.append(socket.create_connection(at, 10))
    except OSError: pass
hello = b'\\x16\\x03\\x01\\x02\\x00\\x01\\x00'
for byte in hello:
    for s in all:
        try: s.send(bytes([byte]))
        except OSError: pass
    time.sleep(0.2)
ended = 0
for s in all:
    s.settimeout(10)
    try:
        while s.recv(100): pass
        ended += 1
    except TimeoutError: pass
    except OSError: ended += 1
print(ended == len(all) and ended > 0)
";
    assert_eq!(python(&network, &(address.clone() + slow)), "True\n");
    // While many wait, a node that is known gets in.
    let many = "
import socket, time
end, all = time.time() + 4, []
while time.time() < end:
    try: all.append(socket.create_connection(at, 1))
    except OSError: pass
    all = all[-400:]
    time.sleep(0.005)
";
    let mut crowd = network.at(0, "python3").args(["-c", &(address + many)]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let there = alpha.count("node beta is there");
    alpha.kill();
    alpha.begin(&THRESHOLD);
    alpha.await_said("node beta is there", there + 1);
    assert!(crowd.wait().unwrap().success());
    alpha.await_other("here");
    assert!(beta.count("no TLS that is spoken here") >= 1, "{}", beta.log());
    assert!(beta.log().lines().count() < 60, "{}", beta.log());
}

#[test]
fn a_daemon_without_such_a_file_listens_to_nobody_and_says_so() {
    let Some(network) = Network::lay() else { return };
    let mut alpha = network.node(0);
    alpha.begin(&THRESHOLD);
    alpha.await_said("oshang: watches", 1);
    let connect = format!("import socket\nprint(socket.socket().connect_ex({:?}))", ("10.76.7.1", 7607));
    assert_eq!(python(&network, &connect), format!("{}\n", libc::ECONNREFUSED));
    let list = network.home.outlast(["node", "list", "--daemon", "/nowhere"]).output().unwrap();
    assert!(
        !list.status.success() && said(&list).contains("no daemon runs here that speaks to other nodes"),
        "{}",
        said(&list)
    );
    let check = network.home.outlast(["node", "check", "/nowhere"]).output().unwrap();
    assert_eq!(check.status.code(), Some(1), "{}", said(&check));
}

#[test]
fn an_address_that_is_taken_is_listened_on_as_soon_as_it_is_free() {
    let Some(network) = Network::lay() else { return };
    let (mut alpha, mut beta) = pair(&network, "\"schl\"");
    let script =
        "import socket, time\ns = socket.create_server(('10.76.7.2', 7607))\nprint(flush=True)\ntime.sleep(600)\n";
    let mut other = network.at(1, "python3").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    other.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    beta.begin(&THRESHOLD);
    beta.await_said("cannot listen on 10.76.7.2:7607", 1);
    alpha.begin(&THRESHOLD);
    alpha.await_said("node beta has vanished", 1);
    other.kill().unwrap();
    other.wait().unwrap();
    alpha.await_said("node beta is there", 1);
    assert_eq!(beta.count("cannot listen on"), 1, "{}", beta.log());
}
