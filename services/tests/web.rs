//! The web server as people and programs use it: files, names, connections.

mod support;
#[path = "support/web.rs"]
mod web;

use std::io::Write;
use std::net::Shutdown;
use std::process::Command;

use web::{site, Web};

fn curl(arguments: &[&str]) -> Vec<u8> {
    let said = Command::new("curl").args(["--silent", "--show-error"]).args(arguments).output().expect("curl");
    assert!(said.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said.stderr));
    said.stdout
}

#[test]
fn curl_gets_files_of_every_size_byte_by_byte() {
    let web = Web::start(&site(), &[]);
    for (name, bytes) in site() {
        let name = name.replace(' ', "%20").replace('&', "%26").replace('\u{e9}', "%C3%A9");
        assert!(curl(&[&web.url(&name)]) == bytes, "{name}");
        let head = String::from_utf8(curl(&["--head", &web.url(&name)])).expect("text");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", bytes.len())), "{head}");
    }
    // All on one connection, and in the version before.
    let urls: Vec<String> = site().iter().take(11).map(|(name, _)| web.url(name)).collect();
    let mut arguments: Vec<&str> = urls.iter().map(String::as_str).collect();
    let all: Vec<u8> = site().into_iter().take(11).flat_map(|(_, bytes)| bytes).collect();
    assert!(curl(&arguments) == all);
    arguments.push("--http1.0");
    assert!(curl(&arguments) == all);
}

#[test]
fn names_lead_to_files_and_folders_as_everywhere() {
    let web = Web::start(&site(), &[]);
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
    let web = Web::start(&site(), &[]);
    let mut client = web.client();
    let small = &site()[2].1;
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
    assert!(client.answer(true).expect("stays").body == site()[9].1);
    assert_eq!(client.answer(false).expect("stays").header("content-length"), Some("1"));
    let last = client.answer(true).expect("the last one");
    assert_eq!((last.header("connection"), last.body == site()[1].1), (Some("close"), true));
    assert_eq!(client.answer(true), None);
}

#[test]
fn a_client_that_has_said_all_gets_all_answers() {
    let web = Web::start(&site(), &[]);
    let mut client = web.client();
    client.send(&"GET /sizes/131072 HTTP/1.1\r\nHost: here\r\n\r\n".repeat(20));
    client.socket.shutdown(Shutdown::Write).expect("half of it");
    for _ in 0..20 {
        assert!(client.answer(true).expect("all of them").body == site()[8].1);
    }
    assert_eq!(client.answer(true), None);
}

#[test]
fn a_file_that_one_has_already_is_not_sent_again() {
    let web = Web::start(&site(), &[]);
    let mut client = web.client();
    let date = client.get("sizes/1").header("last-modified").expect("a date").to_string();
    for (since, status) in [(date.as_str(), 304), ("Sun, 06 Nov 1994 08:49:37 GMT", 200), ("nonsense", 200)] {
        client.send(&format!("GET /sizes/1 HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: {since}\r\n\r\n"));
        let response = client.answer(true).expect("stays");
        assert_eq!((response.status, response.body.len()), (status, usize::from(status == 200)), "{since}");
    }
}

#[test]
fn wrk_has_no_errors() {
    let web = Web::start(&site(), &[]);
    let said = Command::new("wrk").args(["-t1", "-c10", "-d2", &web.url("sizes/4096")]).output().expect("wrk");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && text.contains("Requests/sec"), "{text}");
    assert!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "{text}");
}
