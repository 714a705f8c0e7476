//! redis-server, a thread that serves and four that wait, with clients in mid-pipeline; without a file, and with one to which it
//! appends what it was told.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::case::{Case, Program, Stage};
use crate::drive::{Client, Drive};
use crate::failure::{Failure, Outcome, Tried};

/// Where Debian's package of tools has the server: it becomes one by the name under which it is called.
const SERVER: &str = "/usr/bin/redis-check-rdb";
const BASH: &str = "/bin/bash";

pub const CASES: &[Case] = &[
    Case::new("redis", |stage| server(stage, ""), |stage| clients(stage, 3)).needs(&[SERVER, BASH]),
    // One client only: what several want comes in another order every time. Without a preamble, which names the time.
    Case::new(
        "redis_aof",
        |stage| server(stage, "--appendonly yes --aof-use-rdb-preamble no"),
        |stage| clients(stage, 1),
    )
    .needs(&[SERVER, BASH]),
    Case::new(
        "redis_aof_synced",
        |stage| server(stage, "--appendonly yes --appendfsync always --aof-use-rdb-preamble no"),
        |stage| clients(stage, 1),
    )
    .needs(&[SERVER, BASH]),
];

fn server(stage: &Stage, more: &str) -> Outcome<Program> {
    let options = format!("--bind 127.0.0.1 --port {} --save '' --logfile /dev/null {more}", stage.port);
    Ok(Program::new(&[BASH, "-c", &format!("exec -a redis-server {SERVER} {options}")]))
}

fn clients(stage: &Stage, connections: usize) -> Drive {
    Drive::Clients(Client { port: stage.port, connections, talk: count, farewell: b"SHUTDOWN NOSAVE\r\n" })
}

/// Counts up, one by one and in pipelines: each answer shows a request lost or served twice.
fn count(stream: TcpStream, number: usize, seed: u64) -> Outcome<Vec<u8>> {
    const REQUESTS: usize = 2_000;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut answers = BufReader::new(stream.try_clone().tried("duplicate a socket")?);
    let mut stream = stream;
    let (mut answered, mut received) = (0, Vec::new());
    while answered < REQUESTS {
        let burst = if random.bool() { 1 } else { random.usize(2..30) }.min(REQUESTS - answered);
        stream.write_all(format!("INCR counter-{number}\r\n").repeat(burst).as_bytes()).tried("send to redis")?;
        for _ in 0..burst {
            answered += 1;
            let mut line = String::new();
            answers.read_line(&mut line).tried("hear redis")?;
            if line != format!(":{answered}\r\n") {
                return Err(Failure::Told(format!("client {number}: the answer to request {answered} is {line:?}")));
            }
            received.extend_from_slice(line.as_bytes());
        }
    }
    Ok(received)
}
