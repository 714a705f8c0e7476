//! A TCP server, and clients that count.

use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::stream::drain_both;
use super::{or_end_all, spawn, status_of, Seen};
use crate::diagnosis;
use crate::failure::{Failure, Outcome, Tried};

/// Clients that talk to a server at the same time.
pub struct Client {
    pub port: u16,
    /// How many connections are open at once.
    pub connections: usize,
    /// What each does; returns all it received. Its second argument is its number, the third a seed.
    pub talk: fn(TcpStream, usize, u64) -> Outcome<Vec<u8>>,
    /// What the last connection sends, after all others are done, to end the server.
    pub farewell: &'static [u8],
}

/// Runs the clients against the server; takes what they received and what the server printed.
pub fn perform(mut command: Command, client: &Client, seed: u64) -> Outcome<Seen> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(command)?;
    let stdout = child.stdout.take().expect("a pipe was asked for");
    let stderr = child.stderr.take().expect("a pipe was asked for");
    thread::scope(|scope| {
        let draining = drain_both(scope, stdout, stderr, 0, seed);
        let mut clients = Vec::new();
        for number in 0..client.connections {
            let stream = or_end_all(connect(client.port))?;
            clients.push(scope.spawn(move || (client.talk)(stream, number, seed ^ (number as u64) << 8)));
        }
        let mut seen = Seen::default();
        let mut first_failure = None;
        for (number, talking) in clients.into_iter().enumerate() {
            match talking.join().expect("a client does not panic") {
                Ok(received) => {
                    seen.streams.insert(format!("client {number}"), received);
                }
                Err(failure) => first_failure = first_failure.or(Some(failure)),
            }
        }
        or_end_all(say_farewell(client))?;
        seen.status = Some(status_of(child)?);
        draining.into_streams(&mut seen.streams)?;
        first_failure.map_or(Ok(seen), Err)
    })
}

fn say_farewell(client: &Client) -> Outcome<()> {
    use std::io::{Read, Write};
    let mut stream = connect(client.port)?;
    stream.write_all(client.farewell).tried("say farewell to the server")?;
    let mut rest = Vec::new();
    // The server may close with a reset; its status tells.
    let _ = stream.read_to_end(&mut rest);
    Ok(())
}

/// Connects as soon as the server listens.
fn connect(port: u16) -> Outcome<TcpStream> {
    diagnosis::note("client", format!("connecting to port {port}"));
    // About a minute; the test's own limit is shorter and says more.
    for _ in 0..30_000 {
        if let Ok(stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            stream.set_nodelay(true).tried("set TCP_NODELAY")?;
            diagnosis::note("client", "connected");
            return Ok(stream);
        }
        thread::sleep(Duration::from_millis(2));
    }
    Err(Failure::Told(format!("nobody listens on port {port}")))
}
