//! One connection: bytes of TLS outside, frames inside, and whether there is life in it.

use crate::frame::{self, Frame, Malformed, Reader, VERSION};
use crate::key::PublicKey;
use rustix::event::PollFlags;
use rustls::{AlertDescription, CertificateError, Connection};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// More than this is not kept for a node that does not read.
const MOST_UNREAD: usize = 4 << 20;
/// In one step no more is read of one node, so that others get their turn.
const MOST_AT_ONCE: usize = 256 << 10;
/// As much is encrypted ahead.
const AHEAD: usize = 64 << 10;
/// So often a sign of life is asked for, in one patience.
pub const SIGNS: u32 = 4;

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, displaydoc::Display)]
pub enum Why {
    /// the connection ended
    Closed,
    /// nothing was heard from it for {0:?}
    Silent(Duration),
    /// it has another key than the file says
    OtherKey,
    /// it does not know this node's key
    Unknown,
    /// no TLS that is spoken here: {0}
    Tls(String),
    /// it sent {0}
    Malformed(Malformed),
    /// it speaks another version of the protocol
    Version,
    /// it sent what does not belong there
    Unexpected,
    /// it does not read what it is told
    DoesNotRead,
    /// it does not answer what it is asked
    DoesNotAnswer,
    /// it asks for too much at once
    TooMuch,
    /// {0}
    System(std::io::ErrorKind),
    /// it said: {0}
    Bye(String),
}

/// Writes to a connection that the other side may have ended, without the signal that would end this process for it.
struct Quiet<'a>(&'a TcpStream);

impl Write for Quiet<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(rustix::net::send(self.0, bytes, rustix::net::SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A connection.
pub struct Link {
    stream: TcpStream,
    tls: Connection,
    reader: Reader,
    out: VecDeque<u8>,
    began: Instant,
    heard: Instant,
    pinged: Instant,
    /// When each sign was asked for is in it: no clock of the other node counts.
    epoch: Instant,
    pub round_trip: Option<Duration>,
    /// Both have said hello.
    pub is_open: bool,
    /// The other side has ended it.
    ended: Option<Why>,
}

impl Link {
    pub fn new(stream: TcpStream, mut tls: Connection, now: Instant) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        tls.set_buffer_limit(Some(AHEAD));
        let mut link = Self {
            stream,
            tls,
            reader: Reader::default(),
            out: VecDeque::new(),
            began: now,
            heard: now,
            pinged: now,
            epoch: now,
            round_trip: None,
            is_open: false,
            ended: None,
        };
        link.send(&Frame::hello());
        Ok(link)
    }

    pub fn file(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    pub fn wants(&self) -> PollFlags {
        let mut wants = PollFlags::IN;
        if self.tls.wants_write() || !self.out.is_empty() && !self.tls.is_handshaking() {
            wants |= PollFlags::OUT;
        }
        wants
    }

    /// Whose key the other one has, once it has shown that it has it.
    pub fn key(&self) -> Option<PublicKey> {
        let is_proven = !self.tls.is_handshaking();
        let certificates = self.tls.peer_certificates().filter(|_| is_proven)?;
        PublicKey::of_info(certificates.first()?)
    }

    /// Has it sent as soon as there is room. False: it is longer than anything that may be sent.
    pub fn send(&mut self, frame: &Frame) -> bool {
        frame::write(&mut self.out, frame)
    }

    #[cfg(test)]
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.out.extend(bytes);
    }

    /// How long there has been one.
    pub fn age(&self, now: Instant) -> Duration {
        now.duration_since(self.began)
    }

    /// When it was heard last.
    pub fn heard(&self) -> Instant {
        self.heard
    }

    /// Whether more waits to be sent than is kept for one that does not read.
    pub fn is_full(&self) -> bool {
        self.out.len() > MOST_UNREAD
    }

    /// Has the other side ended it, and why? To be asked when all that it had said before is seen to.
    ///
    /// # Errors
    /// It has.
    pub fn ended(&mut self) -> Result<(), Why> {
        self.ended.take().map_or(Ok(()), Err)
    }

    /// Writes what can be, and reads if there is something, `has_more`; what was said, without hellos and signs of life.
    pub fn step(&mut self, now: Instant, patience: Duration, has_more: bool) -> Result<Vec<Frame>, Why> {
        let mut frames = Vec::new();
        let is_silent = now.duration_since(self.heard) >= patience || !self.is_open && self.age(now) >= patience;
        // Who judges may have been kept from what has come by now.
        let read = if has_more || is_silent { self.read(now, &mut frames) } else { Ok(()) };
        if self.ended.is_some() {
            return Ok(frames);
        }
        if self.is_open && now.duration_since(self.pinged) >= patience / SIGNS {
            self.pinged = now;
            let at = now.duration_since(self.epoch).as_micros() as u64;
            self.send(&Frame::Ping(at));
        }
        // Also when reading has failed: TLS says why.
        let written = self.write();
        read?;
        written?;
        if now.duration_since(self.heard) >= patience || !self.is_open && self.age(now) >= patience {
            return Err(Why::Silent(patience));
        }
        match self.is_full() {
            true => Err(Why::DoesNotRead),
            false => Ok(frames),
        }
    }

    fn read(&mut self, now: Instant, frames: &mut Vec<Frame>) -> Result<(), Why> {
        let mut bytes = [0; 16 << 10];
        let mut total = 0;
        while total < MOST_AT_ONCE && self.ended.is_none() {
            let count = match self.tls.read_tls(&mut self.stream) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                other => other.map_err(system)?,
            };
            let state = self.tls.process_new_packets().map_err(|e| in_words(&e))?;
            let mut left = state.plaintext_bytes_to_read();
            while left > 0 && self.ended.is_none() {
                let count = self.tls.reader().read(&mut bytes).map_err(system)?;
                left = left.saturating_sub(count);
                self.heard = now;
                self.reader.push(&bytes[..count]);
                self.take(now, frames)?;
                if count == 0 {
                    break;
                }
            }
            if count == 0 || state.peer_has_closed() {
                self.ended.get_or_insert(Why::Closed);
            }
            total += count;
        }
        Ok(())
    }

    fn take(&mut self, now: Instant, frames: &mut Vec<Frame>) -> Result<(), Why> {
        while let Some(frame) = self.reader.take().map_err(Why::Malformed)? {
            match frame {
                Frame::Hello { magic, version } => match (self.is_open, &magic, version) {
                    (true, ..) => return Err(Why::Unexpected),
                    (false, b"outlast", VERSION) => self.is_open = true,
                    _ => return Err(Why::Version),
                },
                Frame::Bye(why) => {
                    self.ended = Some(Why::Bye(why));
                    return Ok(());
                }
                _ if !self.is_open => return Err(Why::Unexpected),
                Frame::Ping(sign) => {
                    self.send(&Frame::Pong(sign));
                }
                Frame::Pong(sign) => {
                    let passed = now.duration_since(self.epoch).checked_sub(Duration::from_micros(sign));
                    self.round_trip = passed.or(self.round_trip);
                }
                frame => frames.push(frame),
            }
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), Why> {
        loop {
            if !self.out.is_empty() && !self.tls.is_handshaking() {
                let count = self.tls.writer().write(self.out.as_slices().0).map_err(system)?;
                self.out.drain(..count);
            }
            if !self.tls.wants_write() {
                return Ok(());
            }
            match self.tls.write_tls(&mut Quiet(&self.stream)) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => (),
                Err(e) => return Err(system(e)),
                Ok(_) => (),
            }
        }
    }

    /// Says that this is the end, if there is room for it, and why.
    pub fn close(mut self, why: &str) {
        if !self.tls.is_handshaking() {
            self.send(&Frame::Bye(frame::legible(why)));
        }
        // The one may have gone, and is told so as well then.
        let _ = self.write();
        self.tls.send_close_notify();
        let _ = self.write();
    }
}

fn system(e: std::io::Error) -> Why {
    match e.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Why::Closed,
        kind => Why::System(kind),
    }
}

fn in_words(e: &rustls::Error) -> Why {
    use AlertDescription as Alert;
    match e {
        rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => Why::OtherKey,
        rustls::Error::AlertReceived(Alert::AccessDenied | Alert::CertificateUnknown | Alert::BadCertificate) => {
            Why::Unknown
        }
        other => Why::Tls(other.to_string()),
    }
}
