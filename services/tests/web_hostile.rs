//! The web server and those who ask for what is wrong, are slow, or mean it ill.

mod support;
#[path = "support/web.rs"]
mod web;

use std::io::{Read, Write};

use web::{bytes, site, Web};

#[test]
fn what_is_wrong_is_refused_and_said_and_the_connection_ends_where_it_has_to() {
    let web = Web::start(&site(), &[]);
    for (request, status, stays) in [
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nwords".to_string(), 405, true),
        ("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n".into(), 405, true),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nwords".into(), 200, true),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n{}", "x".repeat(60_000)), 200, true),
        ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n".into(), 413, false),
        ("GET / HTTP/1.1\r\n\r\n".into(), 400, false),
        ("\u{16}\u{3}\u{1} garbage\r\n\r\n".into(), 400, false),
        (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(3_000)), 414, false),
        (format!("GET /{}", "x".repeat(100_000)), 414, false),
        (format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(100_000)), 431, false),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n".into(), 505, false),
    ] {
        let mut client = web.client();
        // It may have had enough before all is sent.
        let _ = client.socket.write_all(request.as_bytes());
        let response = client.answer(true).unwrap_or_else(|| panic!("no answer to {request:.80}"));
        assert_eq!(response.status, status, "{request:.80}");
        assert_eq!(response.header("connection"), Some(if stays { "keep-alive" } else { "close" }));
        if status == 405 {
            assert_eq!(response.header("allow"), Some("GET, HEAD"));
        }
        match stays {
            true => assert_eq!(client.get("sizes/1").status, 200),
            false => assert_eq!(client.answer(true), None),
        }
    }
}

/// Kilobytes of a process that are in memory.
fn memory(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = text.lines().find(|line| line.starts_with("VmRSS")).expect("its memory");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

/// How many sockets a process has.
fn sockets(process: u32) -> usize {
    let all = std::fs::read_dir(format!("/proc/{process}/fd")).expect("a process");
    let is_socket = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    all.flatten().filter(is_socket).count()
}

#[test]
fn clients_that_are_slow_or_never_read_are_ended_and_take_no_memory_meanwhile() {
    let web = Web::start(&site(), &["--timeout", "2s", "--connections", "200"]);
    let mut good = web.client();
    assert_eq!(good.get("").status, 200);
    let (before, open) = (memory(web.process()), sockets(web.process()));
    let mut never: Vec<_> = (0..60).map(|_| web.client()).collect();
    for client in &mut never {
        // Fifty times five megabytes that it does not take.
        client.send(&"GET /sizes/5000000 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(50));
    }
    let mut slow: Vec<_> = (0..60).map(|_| web.client()).collect();
    let silent: Vec<_> = (0..20).map(|_| web.client()).collect();
    let mut ended = 0;
    let mut turn = 0;
    while ended < slow.len() {
        // A byte now and then does not keep a connection.
        for client in &mut slow {
            let _ = client.socket.write_all(if turn == 0 { b"GET / HTTP/1.1\r\nX: " } else { b"x" });
        }
        turn += 1;
        assert!(turn < 600, "{ended} of the slow clients ended");
        std::thread::sleep(std::time::Duration::from_millis(100));
        let over = |client: &&mut web::Client| {
            client.socket.set_nonblocking(true).expect("a socket");
            let end = client.socket.peek(&mut [0; 1]).is_ok_and(|_| true)
                || client.socket.take_error().is_ok_and(|e| e.is_some());
            client.socket.set_nonblocking(false).expect("a socket");
            end
        };
        ended = slow.iter_mut().filter(over).count();
    }
    for client in slow {
        let mut client = client;
        // It may find its last bytes refused in place of the answer.
        if let Some(response) = client.answer(true) {
            assert_eq!(response.status, 408);
        }
    }
    for mut client in silent {
        assert_eq!(client.socket.read(&mut [0]).expect("the end"), 0);
    }
    // Whoever begins to read before its end may have it all. One fewer than there were: the first client is ended, too, for asking nothing more.
    let mut looks = 0;
    while sockets(web.process()) >= open {
        looks += 1;
        assert!(looks < 600, "clients that never read stay");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    for client in never {
        // What the kernel took for it, then the end, far from all.
        let mut client = client;
        let mut count = 0;
        let mut bytes = [0; 65_536];
        while let Ok(more @ 1..) = client.socket.read(&mut bytes) {
            count += more;
        }
        assert!(count < 50 * 5_000_000);
    }
    let more = memory(web.process()).saturating_sub(before);
    assert!(more < 60_000, "{more} KiB more");
    assert_eq!(web.client().get("").status, 200);
}

#[test]
fn garbage_and_clients_that_go_away_leave_others_alone() {
    let mut web = Web::start(&site(), &[]);
    let mut good = web.client();
    for round in 0..150u64 {
        let mut bad = web.client();
        let mut bytes = bytes(500 + round as usize * 20, round + 1);
        if round % 3 == 0 {
            // It begins well.
            bytes.splice(0..0, *b"GET /sizes/5000000 HTTP/1.1\r\nHost: a\r\n\r\n");
        }
        let _ = bad.socket.write_all(&bytes);
        if round % 2 == 0 {
            let _ = bad.socket.read(&mut [0; 100]);
        }
        drop(bad);
        assert!(good.get("sizes/4097").body == site()[4].1);
    }
    assert_eq!(web.stop(), 0);
}

#[test]
fn connections_beyond_the_most_wait_for_their_turn() {
    let web = Web::start(&site(), &["--connections", "3"]);
    let mut first: Vec<_> = (0..3).map(|_| web.client()).collect();
    for client in &mut first {
        assert_eq!(client.get("").status, 200);
    }
    let mut late: Vec<_> = (0..10).map(|_| web.client()).collect();
    for client in &mut late {
        client.ask("sizes/1");
    }
    for client in &mut first {
        assert_eq!(client.get("").status, 200);
    }
    drop(first);
    for mut client in late {
        assert_eq!(client.answer(true).expect("its turn").status, 200);
    }
}
