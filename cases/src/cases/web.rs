//! An HTTP server of Go's library, and clients that keep their connections for a while: some bodies have a length, some come in
//! chunks, some requests are sent before the answer to the one before.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::time::Duration;

use crate::case::{Case, Program};
use crate::drive::{Client, Drive};
use crate::failure::{Failure, Outcome, Tried};
use crate::launch::program;

const GO: &str = "/usr/bin/go";
const REQUESTS: u64 = 600;

/// Room for the run-time system to start in.
const PACE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(30));

pub const CASES: &[Case] = &[Case::new(
    "go_web",
    |stage| Ok(Program::new(&[&program("web"), &stage.port.to_string()])),
    |stage| {
        let farewell = b"GET /quit HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n";
        Drive::Clients(Client { port: stage.port, connections: 4, talk: browse, farewell })
    },
)
.needs(&[GO])
.pace(PACE)];

/// One connection after the other, each for some bursts of requests.
fn browse(stream: TcpStream, number: usize, seed: u64) -> Outcome<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let address = stream.peer_addr().tried("ask for the server's address")?;
    let mut connection = Some(stream);
    let (mut done, mut sum, mut received) = (0, 0, Vec::new());
    while done < REQUESTS {
        let stream = match connection.take() {
            Some(stream) => stream,
            None => TcpStream::connect(address).tried("connect to the server again")?,
        };
        stream.set_nodelay(true).tried("set TCP_NODELAY")?;
        let mut answers = BufReader::new(stream.try_clone().tried("duplicate a socket")?);
        for _ in 0..random.u64(5..40) {
            let burst = done..(done + if random.bool() { 1 } else { random.u64(2..6) }).min(REQUESTS);
            (&stream).write_all(&requests(number, burst.clone())).tried("send to the server")?;
            for index in burst.clone() {
                let expected = expected(number, index, &mut sum);
                let body = body(&mut answers)?;
                if body != expected {
                    let (expected, got) = (String::from_utf8_lossy(&expected), String::from_utf8_lossy(&body));
                    let text = format!("client {number}, answer {index}: expected {expected:?}, got {got:?}");
                    return Err(Failure::Told(text));
                }
                received.extend(body);
            }
            done = burst.end;
        }
    }
    Ok(received)
}

/// Every 20th is about the total so far, every third of the others has a body in chunks.
fn requests(client: usize, indices: Range<u64>) -> Vec<u8> {
    let request = |index: u64| {
        let head = |what: &str| format!("{what} HTTP/1.1\r\nHost: it\r\nClient: {client}\r\n");
        let number = value(client, index).to_string();
        let (front, back) = number.split_at(number.len() / 2);
        match index {
            _ if index % 20 == 19 => head("GET /pieces") + "\r\n",
            _ if index % 3 == 0 => {
                let chunks = format!("{:x}\r\n{front}\r\n{:x}\r\n{back}\r\n0\r\n\r\n", front.len(), back.len());
                head("POST /add") + "Transfer-Encoding: chunked\r\n\r\n" + &chunks
            }
            _ => head("POST /add") + &format!("Content-Length: {}\r\n\r\n{number}", number.len()),
        }
    };
    indices.map(request).collect::<String>().into_bytes()
}

fn expected(client: usize, index: u64, sum: &mut u64) -> Vec<u8> {
    if index % 20 == 19 {
        return (0..10).map(|piece| format!("{piece} {sum}\n")).collect::<String>().into_bytes();
    }
    *sum += value(client, index);
    format!("{} {sum}\n", value(client, index)).into_bytes()
}

fn value(client: usize, index: u64) -> u64 {
    1_000_000 * (client as u64 + 1) + index
}

/// The body of the next answer, whose head must say that all is well.
fn body(answers: &mut BufReader<TcpStream>) -> Outcome<Vec<u8>> {
    let status = line(answers)?;
    if status != "HTTP/1.1 200 OK" {
        return Err(Failure::Told(format!("the server answers {status:?}")));
    }
    let mut len = None;
    loop {
        let header = line(answers)?;
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("Content-Length: ") {
            len = value.parse().ok();
        }
    }
    let mut body = Vec::new();
    if let Some(len) = len {
        body.resize(len, 0);
        answers.read_exact(&mut body).tried("read the server's answer")?;
        return Ok(body);
    }
    loop {
        let size = line(answers)?;
        let len = usize::from_str_radix(&size, 16);
        let len = len.map_err(|_| Failure::Told(format!("the server sends a chunk of {size:?} bytes")))?;
        let mut chunk = vec![0; len + 2];
        answers.read_exact(&mut chunk).tried("read the server's answer")?;
        body.extend(&chunk[..len]);
        if len == 0 {
            return Ok(body);
        }
    }
}

/// Without its end.
fn line(answers: &mut BufReader<TcpStream>) -> Outcome<String> {
    let mut line = String::new();
    answers.read_line(&mut line).tried("read the server's answer")?;
    Ok(line.trim_end().to_string())
}
