//! The content process: it alone reaches the RAM file system. What the front asks for it reads from there into buffers of the
//! memory manager, which the front may only read.

use std::io::Write;
use std::path::Path;

use outlast_glue_rt::{Grant, Mapped};
use outlast_services::fs::PIECE;
use outlast_services::memory::{READ, WRITE};

use crate::failure::{part, CallFailed, Failure};
use crate::load;
use crate::mailbox::{Operation, Reply, Request, BUFFER, BUFFER_PAGES};
use crate::stubs::{Event, Fs, Memory, Stubs};

/// The channels that it is granted, of those that the front has.
pub const GRANTS: [&str; 3] = ["event", "fs", "memory"];

#[derive(Clone)]
struct Content {
    events: Event,
    files: Fs,
    memory: Memory,
    /// The front's number at the memory manager.
    front: u32,
}

/// Loads the files below `root`, makes a mailbox for each worker, says on standard output what the front needs of them
/// (`alias request-event reply-event`, one a line; then `files bytes`), and serves until it is killed.
pub fn run(stubs: Stubs, root: &Path, front: u32, workers: u32) -> Result<(), Failure> {
    let channel = |name| Grant::inherited(name).and_then(Grant::open).map_err(|error| Failure::Channel(name, error));
    let events = Event::new(stubs, channel("event")?);
    let files = Fs::new(stubs, channel("fs")?);
    let memory = Memory::new(stubs, channel("memory")?);
    let loaded = load::load(&files, root)?;
    let content = Content { events, files, memory, front };
    let mut output = String::new();
    for worker in 0..workers {
        let (page, _) = content.memory.mem_get(1)?;
        let mailbox = content.memory.map(page)?;
        let alias = content.memory.mem_alias(page, front, READ | WRITE)?;
        let [request, reply] = [content.events.event_split(0, 0)?, content.events.event_split(0, 0)?];
        output.push_str(&format!("{alias} {request} {reply}\n"));
        let content = content.clone();
        part(&format!("content{worker}"), move || content.serve(&mailbox, request, reply)).map_err(Failure::Content)?;
    }
    output.push_str(&format!("{} {}\n", loaded.files, loaded.bytes));
    std::io::stdout().write_all(output.as_bytes()).map_err(Failure::Content)?;
    loop {
        std::thread::park();
    }
}

impl Content {
    fn serve(&self, mailbox: &Mapped, asked: u64, answered: u64) -> Result<(), Failure> {
        let mut last = 0;
        loop {
            self.events.event_wait(asked)?;
            let Some(request) = Request::read(mailbox)?.filter(|request| request.number != last) else { continue };
            last = request.number;
            let reply = match self.handle(&request) {
                Ok(reply) => Reply { number: last, ..reply },
                // The file system, or the memory manager, says no.
                Err(Failure::Call(CallFailed { error: outlast_glue_rt::CallError::Service(errno), .. })) => {
                    Reply { number: last, errno: errno.unsigned_abs().into(), page: request.page, ..Reply::default() }
                }
                Err(failure) => return Err(failure),
            };
            reply.write(mailbox)?;
            self.events.event_trigger(answered)?;
        }
    }

    fn handle(&self, request: &Request) -> Result<Reply, Failure> {
        match request.operation {
            Operation::Open => {
                let (file, size) = self.open(&request.path)?;
                let opened = self.begin(request.page, file);
                if opened.is_err() {
                    self.files.fs_release(file)?;
                }
                Ok(Reply { size, ..opened? })
            }
            Operation::Status => {
                let (file, size) = self.open(&request.path)?;
                self.files.fs_release(file)?;
                Ok(Reply { page: request.page, size, ..Reply::default() })
            }
            Operation::Fill => {
                let (file, filled) = self.fill(request.page, request.file)?;
                Ok(Reply { page: request.page, file, filled, ..Reply::default() })
            }
            Operation::Close => {
                self.files.fs_release(request.file)?;
                Ok(Reply::default())
            }
            Operation::Free => {
                self.memory.mem_revoke(request.page)?;
                Ok(Reply::default())
            }
        }
    }

    /// EISDIR: it is a folder.
    fn open(&self, path: &[u8]) -> Result<(u64, u64), Failure> {
        let (file, _) = self.files.fs_split(0, path, 0)?;
        Ok((file, self.files.fs_status(file)?.1))
    }

    /// The first of a file in a buffer, which is made if there is none.
    fn begin(&self, page: u64, file: u64) -> Result<Reply, Failure> {
        let (page, alias) = match page {
            0 => {
                let (page, _) = self.memory.mem_get(BUFFER_PAGES)?;
                (page, self.memory.mem_alias(page, self.front, READ)?)
            }
            page => (page, 0),
        };
        let (file, filled) = self.fill(page, file)?;
        Ok(Reply { page, alias, file, filled, ..Reply::default() })
    }

    /// As much of the file as the buffer takes; closes it at its end, and returns 0 for it then.
    fn fill(&self, page: u64, file: u64) -> Result<(u64, u64), Failure> {
        let buffer = match self.memory.channel().mappings().get(page) {
            Some(buffer) => buffer,
            None => self.memory.map(page)?,
        };
        let mut filled = 0;
        while filled < BUFFER {
            let (_, data, _) = self.files.fs_read(file, PIECE.min(BUFFER - filled) as u32)?;
            buffer.write(filled, &data)?;
            filled += data.len();
            if data.len() < PIECE {
                self.files.fs_release(file)?;
                return Ok((0, filled as u64));
            }
        }
        Ok((file, filled as u64))
    }
}
