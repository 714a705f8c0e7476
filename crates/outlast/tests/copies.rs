//! Copies of a program: each goes on without the others.

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use support::obedient::{Obedient, OFTEN};
use support::{kill, said, Home};

#[test]
fn a_copy_and_its_copy_and_the_original_all_go_on() {
    let home = Home::new();
    let mut program = Obedient::start(&home, "one", &OFTEN);
    program.say("x = 1");
    program.ask("x");
    let first = program.keeps();
    program.say("x = 2");
    program.ask("x");
    let mut older = Obedient::fork(&home, "one", "older", &["--generation", &first.to_string()]);
    let mut newer = Obedient::fork(&home, "one", "newer", &[]);
    older.told = 100;
    newer.told = 200;
    assert_eq!(older.ask("x"), "1");
    assert_eq!(newer.ask("x"), "2");
    newer.say("x = 30");
    assert_eq!(newer.ask("x"), "30");
    let mut again = Obedient::fork(&home, "newer", "again", &[]);
    again.told = 300;
    assert_eq!(again.ask("x"), "30");
    // A copy keeps generations of its own, and is protected like any other program.
    let kept = again.keeps();
    again.say("x = 31");
    assert_eq!(again.ask("x"), "31");
    kill(&home.status("again")["pid"], libc::SIGKILL);
    assert_eq!(again.ask("x"), "31");
    assert!(again.rewind(&kept.to_string()).status.success());
    assert_eq!(again.ask("x"), "30");
    assert_eq!(program.ask("x"), "2");
    assert_eq!(older.ask("x"), "1");
    let mut pids: Vec<_> = ["one", "older", "newer", "again"].map(|name| home.status(name)["pid"].to_string()).to_vec();
    pids.sort();
    pids.dedup();
    assert_eq!(pids.len(), 4);
    let output = home.outlast(["fork", "one", "--name", "newer"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    for program in [program, older, newer, again] {
        let output = program.end();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }
}

/// A copy's connections are closed or those of its original, and those of a program that went back have ended.
#[test]
fn connections_are_the_originals_unless_given_and_end_when_it_goes_back() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut program = Obedient::start(&home, "client", &OFTEN);
    program.say(&format!(
        "import socket; s = socket.create_connection(('127.0.0.1', {})); x = 1",
        listener.local_addr().unwrap().port()
    ));
    let (mut peer, _) = listener.accept().unwrap();
    assert_eq!(program.ask("s.send(b'one')"), "3");
    let first = program.keeps();
    let mut heard = [0; 3];
    peer.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"one");
    let mut copy = Obedient::fork(&home, "client", "copy", &[]);
    copy.told = 100;
    assert_eq!(copy.ask("x, s.recv(9)"), "1 b''");
    assert!(copy.home.status("copy")["degradations"].to_string().contains("descriptor-lost"));
    peer.write_all(b"still here").unwrap();
    assert_eq!(program.ask("s.recv(10)"), "b'still here'");
    let mut heir = Obedient::fork(&home, "client", "heir", &["--connections", "given"]);
    heir.told = 200;
    assert_eq!(heir.ask("x, s.send(b'heir')"), "1 4");
    assert_eq!(program.ask("s.send(b'both')"), "4");
    let mut heard = [0; 8];
    peer.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"heirboth");
    // It ends for all who have it.
    assert!(program.rewind(&first.to_string()).status.success());
    assert_eq!(peer.read(&mut heard).unwrap(), 0);
    assert_eq!(program.ask("x, s.recv(9)"), "1 b''");
    assert_eq!(heir.ask("s.recv(9)"), "b''");
    for program in [program, heir] {
        assert_eq!(program.end().status.code(), Some(0));
    }
}
