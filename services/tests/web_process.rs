//! The web server as a process: how it starts and ends, its log, and what it is without recovery.

mod support;
#[path = "support/web.rs"]
mod web;

use std::io::{Read, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_services::processes::children;
use support::{await_that, kill};
use web::{command, site, Web, COMPONENTS};

#[test]
fn requests_are_in_the_log_when_it_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let mut web = Web::start(&site(), &["--log", log.to_str().expect("text")]);
    let mut client = web.client();
    for _ in 0..50 {
        client.get("sizes/1");
    }
    client.get("a\"b");
    assert_eq!(web.stop(), 0);
    let lines = std::fs::read_to_string(log).expect("a log");
    assert_eq!(lines.lines().filter(|line| line.ends_with("127.0.0.1 \"GET /sizes/1\" 200 1")).count(), 50, "{lines}");
    assert_eq!(lines.lines().filter(|line| line.ends_with("\"GET /a\\\"b\" 404 0")).count(), 1, "{lines}");
}

#[test]
fn nothing_of_it_is_left_when_it_has_ended_however() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGKILL] {
        let mut web = Web::start(&site(), &[]);
        let mut all = children(web.process());
        assert_eq!(all.len(), COMPONENTS.len() + 1);
        all.extend(all.clone().into_iter().flat_map(children));
        kill(web.process(), signal);
        await_that(|| web.ended());
        assert_eq!(web.status(), if signal == libc::SIGKILL { -1 } else { 0 });
        let there = |process: &u32| {
            let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            name.starts_with("outlast-") && !state.contains(") Z ")
        };
        await_that(|| !all.iter().any(there));
    }
}

#[test]
fn without_recovery_the_server_works_until_a_component_dies() {
    for component in COMPONENTS {
        let mut web = Web::start(&site(), &["--stubs", "base"]);
        let mut client = web.client();
        assert!(client.get("sizes/1000000").body == site()[9].1);
        let template = web.template(component);
        let instance = children(template)[0];
        kill(instance, libc::SIGKILL);
        await_that(|| !children(template).contains(&instance));
        // Its pages are to be given back to a memory manager that has never heard of them.
        drop(client);
        // The next call of it is one too many, and each of these requests makes one; but that of the RAM file system finds
        // one that works, without the files.
        let lost = AtomicBool::new(false);
        await_that(|| {
            let mut answer = [0; 12];
            if let Ok(mut socket) = std::net::TcpStream::connect(web.address) {
                let _ = socket.write_all(b"GET / HTTP/1.0\r\n\r\n");
                let _ = socket.read_exact(&mut answer);
            }
            lost.store(answer == *b"HTTP/1.1 404", Ordering::SeqCst);
            web.ended() || lost.load(Ordering::SeqCst)
        });
        match lost.into_inner() {
            true => assert_eq!(component, "fs"),
            false => assert_eq!(web.status(), 1, "{component}"),
        }
    }
}

#[test]
fn what_keeps_it_from_starting_is_said_in_a_line() {
    let run = |command: &mut Command| {
        let said = command.output().expect("the server");
        (said.status.code(), String::from_utf8(said.stderr).expect("text"))
    };
    let (status, said) = run(&mut command("/nowhere/at/all".as_ref()));
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(said, "outlast-web: cannot read /nowhere/at/all: No such file or directory (os error 2)\n");
    let web = Web::start(&site(), &[]);
    let mut taken = Command::new(env!("CARGO_BIN_EXE_outlast-web"));
    taken.args(["--listen", &web.address.to_string(), "--root"]).arg(web.root.path());
    let (status, said) = run(&mut taken);
    assert_eq!(status, Some(1), "{said}");
    assert_eq!(said, format!("outlast-web: cannot listen on {}: Address already in use (os error 98)\n", web.address));
    let folder = tempfile::tempdir().expect("a folder");
    let large = std::fs::File::create(folder.path().join("large")).expect("a file");
    large.set_len(33 << 20).expect("a hole");
    let (status, said) = run(&mut command(folder.path()));
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("large does not fit the RAM file system"), "{said}");
    for wrong in [["--workers", "0"], ["--timeout", "soon"], ["--stubs", "none"], ["--connections", "2001"]] {
        let (status, said) = run(command(folder.path()).args(wrong));
        assert_eq!(status, Some(2), "{said}");
    }
    let help = command(folder.path()).arg("--help").output().expect("the server");
    let text = String::from_utf8_lossy(&help.stdout);
    assert!(help.status.success() && text.contains("--listen") && text.contains("Exit status"), "{text}");
}
