//! A thread that serves connections: it reads requests, has the content process open files, and sends what comes of it.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::connection::{Body, Buffer, Connection, Got, Next};
use crate::failure::Failure;
use crate::front::{Front, WORKERS};
use crate::http::request::{parse, Method, Parsed, Request};
use crate::http::response::{head, plain, Head};
use crate::http::target::{resolve, Path};
use crate::log;
use crate::mailbox::{Operation, Reply, BUFFER};
use crate::partner::Partner;

/// Responses, and pieces of large files, before it is another connection's turn.
const TURNS: u32 = 64;
/// Bytes of responses that are gathered before they are sent, where more requests are there already.
const GATHERED: usize = 32_768;
/// What an idle connection may keep of the memory for its output.
const KEPT: usize = 4096;

pub struct Worker {
    pub front: Arc<Front>,
    pub number: usize,
    pub partner: Partner,
}

impl Worker {
    pub fn run(mut self) -> Result<(), Failure> {
        let front = self.front.clone();
        let thread = front.workers[self.number];
        let mut served = None;
        loop {
            match front.turn(self.number, served.take())? {
                Some(mut connection) => match self.serve(&mut connection)? {
                    Next::Close => self.close(*connection)?,
                    next => served = Some((connection, next)),
                },
                None => drop(front.scheduler.sched_block(thread, 0)?),
            }
        }
    }

    fn close(&mut self, mut connection: Connection) -> Result<(), Failure> {
        if let Some(body) = connection.body.take() {
            self.partner.ask(Operation::Close, 0, body.file, b"")?;
        }
        if let Some(buffer) = connection.buffer.take() {
            self.partner.ask(Operation::Free, buffer.page, 0, b"")?;
        }
        drop(connection);
        self.front.resume()
    }

    /// As far as it goes without waiting for the client.
    fn serve(&mut self, connection: &mut Connection) -> Result<Next, Failure> {
        if connection.expired {
            if connection.lingers() || connection.input.is_empty() || connection.body.is_some() || connection.sent > 0 {
                return Ok(Next::Close);
            }
            // It has begun a request and not ended it.
            self.refuse(connection, 408)?;
            connection.expired = false;
        }
        if connection.lingers() {
            return Ok(connection.linger());
        }
        for _ in 0..TURNS {
            let parsed = match connection.closing || connection.body.is_some() || connection.skip > 0 {
                true => Parsed::Partial,
                false => parse(&connection.input),
            };
            if parsed == Parsed::Partial || connection.output.len() > GATHERED {
                if let Some(next) = connection.flush() {
                    return Ok(next);
                }
            }
            if connection.body.is_some() {
                if !self.fill(connection)? {
                    return Ok(Next::Close);
                }
                continue;
            }
            if connection.closing {
                return Ok(connection.linger());
            }
            match parsed {
                Parsed::Request(request) => self.answer(connection, &request)?,
                Parsed::Refused(status) => self.refuse(connection, status)?,
                Parsed::Partial if connection.ended => return Ok(Next::Close),
                Parsed::Partial => {
                    let begins = connection.input.is_empty();
                    match connection.read() {
                        Got::Bytes if begins => connection.deadline = Instant::now() + self.front.timeout,
                        Got::Bytes | Got::End => {}
                        Got::Gone => return Ok(Next::Close),
                        Got::Nothing => {
                            connection.output.shrink_to(KEPT);
                            return Ok(Next::Readable);
                        }
                    }
                }
            }
        }
        Ok(Next::Turn)
    }

    fn refuse(&mut self, connection: &mut Connection, status: u16) -> Result<(), Failure> {
        plain(&mut connection.output, status, None, false, false);
        connection.closing = true;
        self.note(connection, "-", status, 0)
    }

    fn answer(&mut self, connection: &mut Connection, request: &Request) -> Result<(), Failure> {
        connection.consume(request.length, request.body);
        connection.closing = !request.keep;
        connection.deadline = Instant::now() + self.front.timeout;
        let Some(path) = resolve(&request.target) else { return self.say(connection, request, 400, None) };
        if request.method == Method::Other {
            return self.say(connection, request, 405, None);
        }
        let fresh = request.since.is_some_and(|since| since >= whole_seconds(self.front.loaded));
        let operation = match request.method == Method::Get && !fresh {
            true => Operation::Open,
            false => Operation::Status,
        };
        let file = match path.folder {
            true => Path { bytes: join(&path.bytes, b"index.html"), folder: false },
            false => path.clone(),
        };
        let page = connection.buffer.as_ref().map_or(0, |buffer| buffer.page);
        let reply = self.partner.ask(operation, page, 0, &file.bytes)?;
        if connection.buffer.is_none() && reply.alias != 0 {
            let mapped = self.front.memory.map(reply.alias)?;
            connection.buffer = Some(Buffer { page: reply.page, mapped });
        }
        match i32::try_from(reply.errno).unwrap_or(libc::EIO) {
            0 => {}
            libc::EISDIR if !path.folder => {
                return self.say(connection, request, 301, Some(&path.location()));
            }
            libc::ENOENT | libc::ENOTDIR | libc::EISDIR | libc::EINVAL | libc::ENAMETOOLONG => {
                return self.say(connection, request, 404, None);
            }
            _ => return self.say(connection, request, 503, None),
        }
        let status = if fresh { 304 } else { 200 };
        let kind = file.kind();
        let (modified, keep) = (Some(self.front.loaded), request.keep);
        let about = Head { length: reply.size, kind: &kind, modified, location: None, keep };
        head(&mut connection.output, status, &about);
        let bytes = if operation == Operation::Open { reply.size } else { 0 };
        if operation == Operation::Open {
            self.take(connection, &reply, reply.size)?;
        }
        self.note(connection, &line(request), status, bytes)
    }

    /// A response in words.
    fn say(
        &mut self,
        connection: &mut Connection,
        request: &Request,
        status: u16,
        location: Option<&str>,
    ) -> Result<(), Failure> {
        plain(&mut connection.output, status, location, request.keep, request.method == Method::Head);
        self.note(connection, &line(request), status, 0)
    }

    /// Has what is in the buffer sent, of a file of which so much is left.
    fn take(&mut self, connection: &mut Connection, reply: &Reply, left: u64) -> Result<bool, Failure> {
        let filled = usize::try_from(reply.filled).unwrap_or(BUFFER).min(BUFFER);
        // Nothing but an empty file fills nothing; who gets less than was said must not take it for all.
        let Some(left) = left.checked_sub(filled as u64).filter(|_| filled > 0 || left == 0) else { return Ok(false) };
        if let Some(buffer) = &connection.buffer {
            let begin = connection.output.len();
            connection.output.resize(begin + filled, 0);
            buffer.mapped.read(0, &mut connection.output[begin..])?;
        }
        match (reply.file, left) {
            (0, left) => return Ok(left == 0),
            (file, 0) => drop(self.partner.ask(Operation::Close, 0, file, b"")?),
            (file, left) => connection.body = Some(Body { file, left }),
        }
        Ok(true)
    }

    /// The next of the file; false where there is less than was said.
    fn fill(&mut self, connection: &mut Connection) -> Result<bool, Failure> {
        let (Some(body), Some(buffer)) = (connection.body.take(), &connection.buffer) else { return Ok(false) };
        let reply = self.partner.ask(Operation::Fill, buffer.page, body.file, b"")?;
        connection.deadline = Instant::now() + self.front.timeout;
        Ok(reply.errno == 0 && self.take(connection, &reply, body.left)?)
    }

    fn note(&mut self, connection: &Connection, request: &str, status: u16, bytes: u64) -> Result<(), Failure> {
        let Some(log) = &self.front.log else { return Ok(()) };
        let line = log::line(connection.peer.ip(), request, status, bytes);
        log.with(&self.front.locks, WORKERS + self.number as u32, |log| log.add(&line))?
    }
}

fn line(request: &Request) -> String {
    let method = match request.method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Other => "-",
    };
    format!("{method} {}", request.target)
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    match folder {
        b"" => name.to_vec(),
        folder => [folder, b"/", name].concat(),
    }
}

/// As dates in headers can say it.
fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
}
