//! Clients of an HTTP server that ask again as soon as they are answered, or after a pause, and never sleep.
//!
//! A client that sleeps costs the server a wake-up for each answer, which is dearer than the answer on a virtual machine, and which
//! a faster server does not pay, because its clients are busy.

use crate::failure::{Failure, Outcome, Tried};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

/// What all clients together saw.
pub struct Seen {
    pub requests: u64,
    pub took: Duration,
    /// The longest that one of them waited for an answer.
    pub longest: Duration,
}

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

struct Client {
    connection: TcpStream,
    answer: Vec<u8>,
    asked: Instant,
    /// It has its answer, and asks again at this time.
    rests_until: Option<Instant>,
}

/// What is asked for.
pub struct Load<'a> {
    pub path: &'a str,
    /// Its content.
    pub body: &'a [u8],
    /// Clients, on a connection each.
    pub clients: usize,
    /// From an answer to the next question.
    pub pause: Duration,
    pub time: Duration,
}

/// Puts the load on the server.
///
/// # Errors
/// Any answer but the right one, and a connection that ends.
pub fn ask(port: u16, load: &Load) -> Outcome<Seen> {
    let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", load.path);
    let mut clients = Vec::new();
    for _ in 0..load.clients {
        let connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).tried("connect")?;
        connection.set_nodelay(true).tried("change a socket")?;
        connection.set_nonblocking(true).tried("change a socket")?;
        let mut client = Client { connection, answer: Vec::new(), asked: Instant::now(), rests_until: None };
        client.ask(&request)?;
        clients.push(client);
    }
    let mut seen = Seen { requests: 0, took: Duration::ZERO, longest: Duration::ZERO };
    let began = Instant::now();
    while began.elapsed() < load.time {
        for client in &mut clients {
            if client.rests_until.is_some_and(|time| Instant::now() < time) {
                continue;
            }
            if client.rests_until.is_some() {
                client.ask(&request)?;
            } else if client.has_answer(load.body)? {
                seen.longest = seen.longest.max(client.asked.elapsed());
                seen.requests += 1;
                client.rests_until = Some(Instant::now() + load.pause);
            }
        }
    }
    seen.took = began.elapsed();
    // Who was not answered when time was up waited until then at least.
    let waiting = clients.iter().filter(|client| client.rests_until.is_none());
    seen.longest = waiting.map(|client| client.asked.elapsed()).chain([seen.longest]).max().unwrap_or_default();
    Ok(seen)
}

impl Client {
    fn ask(&mut self, request: &str) -> Outcome<()> {
        self.answer.clear();
        (self.asked, self.rests_until) = (Instant::now(), None);
        // A request this short fits, since all before it were answered.
        self.connection.write_all(request.as_bytes()).tried("ask the server")
    }

    /// Has the whole answer come?
    fn has_answer(&mut self, body: &[u8]) -> Outcome<bool> {
        let mut part = [0; 16384];
        match self.connection.read(&mut part) {
            Ok(0) => return Err(self.wrong("the connection has ended")),
            Ok(n) => self.answer.extend_from_slice(&part[..n]),
            Err(e) if e.kind() == ErrorKind::WouldBlock && self.asked.elapsed() < PATIENCE => return Ok(false),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Err(self.wrong("no answer in time")),
            Err(e) => return Err(e).tried("read the server's answer"),
        }
        let Some(head) = self.answer.windows(4).position(|part| part == b"\r\n\r\n") else { return Ok(false) };
        let (head, rest) = self.answer.split_at(head + 4);
        match () {
            _ if !head.starts_with(b"HTTP/1.1 200 ") => Err(self.wrong("not what was asked for")),
            _ if rest.len() < body.len() => Ok(false),
            _ if rest == body => Ok(true),
            _ => Err(self.wrong("another content")),
        }
    }

    fn wrong(&self, what: &str) -> Failure {
        let start = &self.answer[..self.answer.len().min(80)];
        Failure::Unreadable("the server".into(), format!("{what}: {}", String::from_utf8_lossy(start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// Answers on one connection, in two pieces, what was asked first with `first`, all else with `body`.
    fn serve(first: &'static str, body: &'static str) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            connection.set_nodelay(true).unwrap();
            let mut answer = first;
            while connection.read(&mut [0; 256]).is_ok_and(|n| n > 0) {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", answer.len());
                if connection.write_all(head.as_bytes()).is_err() {
                    break;
                }
                thread::sleep(Duration::from_millis(2));
                let _ = connection.write_all(format!("\r\n{answer}").as_bytes());
                answer = body;
            }
        });
        port
    }

    fn one_client(time: Duration) -> Load<'static> {
        Load { path: "/", body: b"abc", clients: 1, pause: Duration::ZERO, time }
    }

    #[test]
    fn every_answer_counts_once_and_the_longest_wait_is_known() {
        let seen = ask(serve("abc", "abc"), &one_client(Duration::from_millis(50))).unwrap();
        assert!(seen.requests > 1 && seen.longest >= Duration::from_millis(2), "{} {:?}", seen.requests, seen.longest);
    }

    #[test]
    fn another_content_is_an_error() {
        let failed = ask(serve("abc", "abd"), &one_client(Duration::from_secs(5))).map(|seen| seen.requests);
        assert!(failed.unwrap_err().to_string().contains("another content"));
    }
}
