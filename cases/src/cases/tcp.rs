//! A single-threaded TCP server and clients that count: every answer carries a running sum.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::case::{Case, Program, Stage};
use crate::drive::{Client, Drive};
use crate::failure::{Failure, Outcome, Tried};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("tcp_poll", |stage| server(stage, "poll"), clients),
    Case::new("tcp_select", |stage| server(stage, "select"), clients),
    Case::new("tcp_epoll", |stage| server(stage, "epoll"), clients),
    Case::new("tcp_epoll_edge", |stage| server(stage, "edge"), clients),
];

pub fn server(stage: &Stage, how: &str) -> Outcome<Program> {
    Ok(Program::new(&[&program("tcp_server"), &stage.port.to_string(), how]))
}

/// Several that count at the same time.
pub fn clients(stage: &Stage) -> Drive {
    Drive::Clients(Client { port: stage.port, connections: 3, talk: count, farewell: b"quit\n" })
}

/// Sends numbers, some one by one, some in bursts; the sum in each answer shows a request lost or served twice.
fn count(stream: TcpStream, number: usize, seed: u64) -> Outcome<Vec<u8>> {
    const REQUESTS: u64 = 1_500;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut answers = BufReader::new(stream.try_clone().tried("duplicate a socket")?);
    let mut stream = stream;
    let (mut sent, mut answered, mut sum) = (0, 0, 0);
    let mut received = Vec::new();
    while answered < REQUESTS {
        let burst = if random.bool() { 1 } else { random.u64(2..20) };
        let until = (sent + burst).min(REQUESTS);
        let requests: String = (sent..until).map(|i| format!("{}\n", value(number, i))).collect();
        stream.write_all(requests.as_bytes()).tried("send to the server")?;
        sent = until;
        while answered < sent {
            sum += value(number, answered);
            let expected = format!("{} {sum}\n", value(number, answered));
            let mut line = String::new();
            answers.read_line(&mut line).tried("read the server's answer")?;
            if line != expected {
                let text = format!("client {number}, answer {answered}: expected {expected:?}, got {line:?}");
                return Err(Failure::Told(text));
            }
            received.extend_from_slice(line.as_bytes());
            answered += 1;
        }
    }
    Ok(received)
}

fn value(client: usize, index: u64) -> u64 {
    client as u64 * 1_000_000 + index
}
