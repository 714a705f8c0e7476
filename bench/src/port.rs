//! Ports of servers that are measured.

use crate::failure::{Failure, Outcome, Tried};
use crate::running::LIMIT;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// One that nobody uses now.
pub fn free() -> Outcome<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).tried("listen")?;
    Ok(listener.local_addr().tried("look at a socket")?.port())
}

/// Waits until somebody listens.
pub fn await_server(port: u16, name: &str) -> Outcome<TcpStream> {
    let began = Instant::now();
    loop {
        if let Ok(connection) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            return Ok(connection);
        }
        if began.elapsed() > LIMIT {
            return Err(Failure::TooLong(format!("the start of {name}"), LIMIT.as_secs()));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}
