//! memcached: threads that hand connections to each other, and clients that count and look up what they left.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;

use crate::case::{Case, Program, Stage};
use crate::drive::{Client, Drive};
use crate::failure::{Failure, Outcome, Tried};

const SERVER: &str = "/usr/bin/memcached";

pub const CASES: &[Case] = &[Case::new("memcached", server, clients).needs(&[SERVER])];

fn server(stage: &Stage) -> Outcome<Program> {
    let port = stage.port.to_string();
    // "-A" lets a client end it.
    Ok(Program::new(&[SERVER, "-A", "-l", "127.0.0.1", "-p", &port, "-U", "0", "-t", "3", "-u", "root"]))
}

fn clients(stage: &Stage) -> Drive {
    Drive::Clients(Client { port: stage.port, connections: 5, talk, farewell: b"shutdown\r\n" })
}

/// Counts up, once a request, and now and then stores a value or takes one back.
fn talk(stream: TcpStream, number: usize, seed: u64) -> Outcome<Vec<u8>> {
    const REQUESTS: u64 = 1_200;
    let mut random = fastrand::Rng::with_seed(seed);
    let answers = stream.try_clone().tried("duplicate a socket")?;
    let mut client = Talk { stream, answers: BufReader::new(answers), number, counted: 0, stored: vec![None; 20] };
    client.ask(format!("set counter-{number} 0 0 1\r\n0\r\n"), "STORED\r\n")?;
    while client.counted < REQUESTS {
        let place = random.usize(..client.stored.len());
        match random.u8(..10) {
            0 => client.store(place, "value ".repeat(random.usize(..2_000)))?,
            1 | 2 => client.look_up(place)?,
            _ => client.count(random.u64(1..20).min(REQUESTS - client.counted))?,
        }
    }
    Ok(client.counted.to_string().into_bytes())
}

struct Talk {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
    number: usize,
    counted: u64,
    stored: Vec<Option<String>>,
}

impl Talk {
    fn count(&mut self, times: u64) -> Outcome<()> {
        let expected: String = (1..=times).map(|n| format!("{}\r\n", self.counted + n)).collect();
        self.counted += times;
        self.ask(format!("incr counter-{} 1\r\n", self.number).repeat(times as usize), &expected)
    }

    fn store(&mut self, place: usize, value: String) -> Outcome<()> {
        let request = format!("set {}-{place} 0 0 {}\r\n{value}\r\n", self.number, value.len());
        self.stored[place] = Some(value);
        self.ask(request, "STORED\r\n")
    }

    fn look_up(&mut self, place: usize) -> Outcome<()> {
        let key = format!("{}-{place}", self.number);
        let expected = match &self.stored[place] {
            Some(value) => format!("VALUE {key} 0 {}\r\n{value}\r\nEND\r\n", value.len()),
            None => "END\r\n".to_string(),
        };
        self.ask(format!("get {key}\r\n"), &expected)
    }

    /// Sends a request and takes exactly as much as is expected.
    fn ask(&mut self, request: String, expected: &str) -> Outcome<()> {
        self.stream.write_all(request.as_bytes()).tried("send to memcached")?;
        let mut answer = vec![0; expected.len()];
        let taken = self.answers.read_exact(&mut answer);
        if taken.is_err() || answer != expected.as_bytes() {
            let line = answer.split(|b| *b == b'\n').next().unwrap_or_default().escape_ascii();
            let text = format!("client {}: {taken:?}, the answer to {request:?} begins with {line}", self.number);
            return Err(Failure::Told(text));
        }
        Ok(())
    }
}
