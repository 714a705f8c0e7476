//! Servers under the module `server`: replies have no commit before them and come once. Clients wait for each reply before they send the
//! next request, and one server takes nothing else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::tcp;
use crate::case::{Case, Program, Stage};
use crate::drive::{Client, Drive};
use crate::failure::{Failure, Outcome, Tried};
use crate::launch::program;

const SERVER: &[&str] = &["--server"];
const LARGEST: usize = 1 << 20;
const REQUESTS: u64 = 400;
const WAYS: &[u8] = b"wvmfo";

pub const CASES: &[Case] = &[
    Case::new("replies", |stage| server(stage, &[]), clients).with_options(SERVER).ring_only(),
    Case::new("replies_level", |stage| server(stage, &["level"]), clients).with_options(SERVER).ring_only(),
    Case::new("replies_blocking", |stage| server(stage, &["blocking"]), clients).with_options(SERVER).ring_only(),
    Case::new("replies_counter", |stage| tcp::server(stage, "poll"), tcp::clients).with_options(SERVER).ring_only(),
    Case::new("replies_counter_edge", |stage| tcp::server(stage, "edge"), tcp::clients)
        .with_options(SERVER)
        .ring_only(),
];

fn body() -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    std::iter::repeat_with(|| random.u8(..)).take(LARGEST).collect()
}

fn server(stage: &Stage, more: &[&str]) -> Outcome<Program> {
    stage.room.put("body", &body())?;
    let file = stage.room.work().join("body").display().to_string();
    let (port, server) = (stage.port.to_string(), program("replies"));
    let argv = [&[&*server, &port, &file], more].concat();
    Ok(Program::new(&argv))
}

fn clients(stage: &Stage) -> Drive {
    Drive::Clients(Client { port: stage.port, connections: 3, talk: ask, farewell: b"quit\n" })
}

/// Asks for replies of all sizes, sent in all ways; some it takes slowly, so that the server has to wait for room. Now and then it
/// connects anew.
fn ask(stream: TcpStream, number: usize, seed: u64) -> Outcome<Vec<u8>> {
    let (mut random, expected) = (fastrand::Rng::with_seed(seed), body());
    let address = stream.peer_addr().tried("ask for the server's address")?;
    let mut connection = BufReader::new(stream);
    let (mut sum, mut counted, mut received) = (0, 0, Vec::new());
    for index in 0..REQUESTS {
        if random.u8(..) < 6 {
            connection = BufReader::new(TcpStream::connect(address).tried("connect to the server again")?);
            connection.get_ref().set_nodelay(true).tried("set TCP_NODELAY")?;
            sum = 0;
        }
        let size = if random.u8(..) < 16 { random.usize(..LARGEST) } else { random.usize(..9_000) };
        let (how, value) = (WAYS[random.usize(..WAYS.len())] as char, number as u64 * 1_000_000 + index);
        connection.get_mut().write_all(format!("{value} {how} {size}\n").as_bytes()).tried("send to the server")?;
        sum += value;
        let head = format!("{value} {size} {sum} ");
        let mut line = String::new();
        connection.read_line(&mut line).tried("read the server's reply")?;
        let count = line.strip_prefix(&head).and_then(|count| count.trim_end().parse::<u64>().ok());
        let last = std::mem::replace(&mut counted, count.unwrap_or(0));
        if counted <= last {
            return Err(Failure::Told(format!(
                "client {number}, reply {index}: expected {head:?} and more than {last}, got {line:?}"
            )));
        }
        let mut got = vec![0; size];
        let is_slow = random.u8(..) < 16;
        for piece in got.chunks_mut(1 << 16) {
            if is_slow {
                std::thread::sleep(Duration::from_micros(300));
            }
            connection.read_exact(piece).tried("read the server's reply")?;
        }
        if let Some(at) = (0..size).find(|&at| got[at] != expected[at]) {
            let text = format!("client {number}, reply {index} ({how}, {size} bytes) differs from byte {at} on");
            return Err(Failure::Told(text));
        }
        // What it asks for differs from run to run.
        received.extend(format!("{value}\n").bytes());
    }
    Ok(received)
}
