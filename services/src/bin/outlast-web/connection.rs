//! A client's connection: what came of it, and what is still to be sent there.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_glue_rt::Mapped;

/// Bytes that are taken in before the requests in them have been answered.
const INPUT: usize = 16_384;
/// Bytes that are thrown away after the last response, so that the client gets to read it, and for how long.
const LINGER: usize = 262_144;
const LINGERS: Duration = Duration::from_secs(2);

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Readable,
    Writable,
    /// Nothing: it is others' turn.
    Turn,
    Close,
}

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    Bytes,
    Nothing,
    /// The client sends no more.
    End,
    Gone,
}

/// Pages that contents come in.
pub struct Buffer {
    /// As the content process knows it.
    pub page: u64,
    pub mapped: Arc<Mapped>,
}

/// The rest of a file that is being sent.
pub struct Body {
    pub file: u64,
    pub left: u64,
}

pub struct Connection {
    pub socket: TcpStream,
    pub peer: SocketAddr,
    /// Its name among the events of sockets, which no other has had.
    pub token: u64,
    /// The kernel watches it.
    pub watched: bool,
    pub input: Vec<u8>,
    /// Bytes of a request's body that are still to come, and are skipped.
    pub skip: usize,
    pub output: Vec<u8>,
    pub sent: usize,
    pub buffer: Option<Buffer>,
    pub body: Option<Body>,
    /// The client sends no more.
    pub ended: bool,
    /// No request is taken any more.
    pub closing: bool,
    /// Bytes thrown away since everything was sent.
    lingered: Option<usize>,
    pub deadline: Instant,
    /// Its time is over.
    pub expired: bool,
    _counted: Counted,
}

/// Counts connections for as long as each lives.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Connection {
    pub fn new(socket: TcpStream, peer: SocketAddr, token: u64, deadline: Instant, open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::SeqCst);
        Self {
            socket,
            peer,
            token,
            watched: false,
            input: Vec::new(),
            skip: 0,
            output: Vec::new(),
            sent: 0,
            buffer: None,
            body: None,
            ended: false,
            closing: false,
            lingered: None,
            deadline,
            expired: false,
            _counted: Counted(open.clone()),
        }
    }

    /// Takes in what has come.
    pub fn read(&mut self) -> Got {
        let mut bytes = [0; INPUT];
        let room = INPUT - self.input.len().min(INPUT - 1);
        match self.socket.read(&mut bytes[..room]) {
            Ok(0) => {
                self.ended = true;
                Got::End
            }
            Ok(count) => {
                let skipped = self.skip.min(count);
                self.skip -= skipped;
                self.input.extend_from_slice(&bytes[skipped..count]);
                Got::Bytes
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Got::Nothing,
            Err(error) if error.kind() == ErrorKind::Interrupted => self.read(),
            Err(_) => Got::Gone,
        }
    }

    /// Has done with so many bytes, and with so many of a body that follows.
    pub fn consume(&mut self, count: usize, body: usize) {
        let skipped = body.min(self.input.len() - count);
        self.input.drain(..count + skipped);
        self.skip = body - skipped;
    }

    /// Sends; None when everything is sent.
    pub fn flush(&mut self) -> Option<Next> {
        while self.sent < self.output.len() {
            match self.socket.write(&self.output[self.sent..]) {
                Ok(0) => return Some(Next::Close),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(Next::Writable),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Some(Next::Close),
            }
        }
        self.output.clear();
        self.sent = 0;
        None
    }

    /// After the last response: unread bytes at the close would take it away from the client again.
    pub fn linger(&mut self) -> Next {
        let first = self.lingered.is_none();
        if first {
            if self.ended || self.input.is_empty() && self.skip == 0 && !self.expired {
                let mut byte = [0];
                // Nothing is there that the client could be waiting to have read.
                let nothing =
                    self.socket.peek(&mut byte).map_or_else(|e| e.kind() == ErrorKind::WouldBlock, |n| n == 0);
                if nothing {
                    return Next::Close;
                }
            }
            self.deadline = Instant::now() + LINGERS;
            if self.socket.shutdown(Shutdown::Write).is_err() {
                return Next::Close;
            }
        }
        let mut thrown = self.lingered.unwrap_or(0);
        let mut bytes = [0; INPUT];
        loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => return Next::Close,
                Ok(count) => thrown += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Next::Close,
            }
            if thrown > LINGER {
                return Next::Close;
            }
        }
        self.lingered = Some(thrown);
        Next::Readable
    }

    pub fn lingers(&self) -> bool {
        self.lingered.is_some()
    }
}
