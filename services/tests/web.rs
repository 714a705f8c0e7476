//! The web server as people and programs use it: files, connections, refusals, and those who mean it ill.

mod support;
#[path = "support/web.rs"]
mod web;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use support::{await_that, kill};
use web::{bytes, children, command, Web, COMPONENTS};

fn files() -> Vec<(String, Vec<u8>)> {
    let sizes = [0, 1, 4_095, 4_096, 4_097, 65_535, 65_536, 65_537, 131_072, 1_000_000, 5_000_000];
    let sized = sizes.into_iter().map(|size| (format!("sizes/{size}"), bytes(size, size as u64)));
    let named = [
        ("index.html", b"<p>root".to_vec()),
        ("folder/index.html", b"<p>folder".to_vec()),
        ("folder/deep er/caf\u{e9}+&.txt", b"words".to_vec()),
        ("bare/picture.png", b"png".to_vec()),
    ];
    sized.chain(named.map(|(name, bytes)| (name.to_string(), bytes))).collect()
}

fn curl(arguments: &[&str]) -> Vec<u8> {
    let said = Command::new("curl").args(["--silent", "--show-error"]).args(arguments).output().expect("curl");
    assert!(said.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said.stderr));
    said.stdout
}

#[test]
fn curl_gets_files_of_every_size_byte_by_byte() {
    let web = Web::start(&files(), &[]);
    for (name, bytes) in files() {
        let name = name.replace(' ', "%20").replace('&', "%26").replace('\u{e9}', "%C3%A9");
        assert!(curl(&[&web.url(&name)]) == bytes, "{name}");
        let head = String::from_utf8(curl(&["--head", &web.url(&name)])).expect("text");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", bytes.len())), "{head}");
    }
    // All on one connection, and in the version before.
    let urls: Vec<String> = files().iter().take(11).map(|(name, _)| web.url(name)).collect();
    let mut arguments: Vec<&str> = urls.iter().map(String::as_str).collect();
    let all: Vec<u8> = files().into_iter().take(11).flat_map(|(_, bytes)| bytes).collect();
    assert!(curl(&arguments) == all);
    arguments.push("--http1.0");
    assert!(curl(&arguments) == all);
}

#[test]
fn names_lead_to_files_and_folders_as_everywhere() {
    let web = Web::start(&files(), &[]);
    let mut client = web.client();
    for (path, status, expected) in [
        ("", 200, "<p>root"),
        ("index.html", 200, "<p>root"),
        ("folder/", 200, "<p>folder"),
        ("folder/../index.html?query", 200, "<p>root"),
        ("none", 404, "404 Not Found\n"),
        ("bare/", 404, "404 Not Found\n"),
        ("index.html/", 404, "404 Not Found\n"),
        ("index.html/below", 404, "404 Not Found\n"),
        ("../index.html", 400, "400 Bad Request\n"),
        ("%2e%2e/index.html", 400, "400 Bad Request\n"),
        ("a%00b", 400, "400 Bad Request\n"),
    ] {
        let response = client.get(path);
        assert_eq!((response.status, String::from_utf8_lossy(&response.body).as_ref()), (status, expected), "{path}");
    }
    let long = client.get(&"x".repeat(300));
    assert_eq!(long.status, 404);
    let moved = client.get("folder/deep%20er");
    assert_eq!((moved.status, moved.header("location")), (301, Some("/folder/deep%20er/")));
    for (path, kind) in
        [("", "text/html; charset=utf-8"), ("bare/picture.png", "image/png"), ("sizes/1", "application/octet-stream")]
    {
        assert_eq!(client.get(path).header("content-type"), Some(kind), "{path}");
    }
}

#[test]
fn a_connection_serves_many_requests_also_when_they_come_at_once_or_in_pieces() {
    let web = Web::start(&files(), &[]);
    let mut client = web.client();
    let small = &files()[2].1;
    for _ in 0..200 {
        assert!(client.get("sizes/4095").body == *small);
    }
    let request = "GET /sizes/4095 HTTP/1.1\r\nHost: here\r\n\r\n";
    client.send(&request.repeat(100));
    for _ in 0..100 {
        assert!(client.answer(true).expect("stays").body == *small);
    }
    for byte in request.as_bytes() {
        client.socket.write_all(&[*byte]).expect("stays");
        std::thread::yield_now();
    }
    assert!(client.answer(true).expect("stays").body == *small);
    // What is asked for behind a large file, and a head alone between bodies.
    client.send("GET /sizes/1000000 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /sizes/1 HTTP/1.1\r\nHost: a\r\n\r\n");
    client.send("GET /sizes/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(client.answer(true).expect("stays").body == files()[9].1);
    assert_eq!(client.answer(false).expect("stays").header("content-length"), Some("1"));
    let last = client.answer(true).expect("the last one");
    assert_eq!((last.header("connection"), last.body == files()[1].1), (Some("close"), true));
    assert_eq!(client.answer(true), None);
}

#[test]
fn a_client_that_has_said_all_gets_all_answers() {
    let web = Web::start(&files(), &[]);
    let mut client = web.client();
    client.send(&"GET /sizes/131072 HTTP/1.1\r\nHost: here\r\n\r\n".repeat(20));
    client.socket.shutdown(Shutdown::Write).expect("half of it");
    for _ in 0..20 {
        assert!(client.answer(true).expect("all of them").body == files()[8].1);
    }
    assert_eq!(client.answer(true), None);
}

#[test]
fn a_file_that_one_has_already_is_not_sent_again() {
    let web = Web::start(&files(), &[]);
    let mut client = web.client();
    let date = client.get("sizes/1").header("last-modified").expect("a date").to_string();
    for (since, status) in [(date.as_str(), 304), ("Sun, 06 Nov 1994 08:49:37 GMT", 200), ("nonsense", 200)] {
        client.send(&format!("GET /sizes/1 HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: {since}\r\n\r\n"));
        let response = client.answer(true).expect("stays");
        assert_eq!((response.status, response.body.len()), (status, usize::from(status == 200)), "{since}");
    }
}

#[test]
fn what_is_wrong_is_refused_and_said_and_the_connection_ends_where_it_has_to() {
    let web = Web::start(&files(), &[]);
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

#[test]
fn clients_that_are_slow_or_never_read_are_ended_and_take_no_memory_meanwhile() {
    let web = Web::start(&files(), &["--timeout", "2s", "--connections", "200"]);
    let mut good = web.client();
    assert_eq!(good.get("").status, 200);
    let before = memory(web.process());
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
    let mut web = Web::start(&files(), &[]);
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
        assert!(good.get("sizes/4097").body == files()[4].1);
    }
    assert_eq!(web.stop(), 0);
}

#[test]
fn connections_beyond_the_most_wait_for_their_turn() {
    let web = Web::start(&files(), &["--connections", "3"]);
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

#[test]
fn wrk_has_no_errors() {
    let web = Web::start(&files(), &[]);
    let said = Command::new("wrk").args(["-t1", "-c10", "-d2", &web.url("sizes/4096")]).output().expect("wrk");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && text.contains("Requests/sec"), "{text}");
    assert!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "{text}");
}

#[test]
fn requests_are_in_the_log_when_it_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let mut web = Web::start(&files(), &["--log", log.to_str().expect("text")]);
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
        let mut web = Web::start(&files(), &[]);
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
        let mut web = Web::start(&files(), &["--stubs", "base"]);
        assert!(web.client().get("sizes/1000000").body == files()[9].1);
        let template = web.template(component);
        kill(children(template)[0], libc::SIGKILL);
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
    let web = Web::start(&files(), &[]);
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
