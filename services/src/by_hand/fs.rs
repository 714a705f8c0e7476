//! The RAM file system, whose recovery is written by hand. Contents are the component's own affair; what is open is remembered here,
//! and calls about the same file are made one at a time, so that what each did is noted before the next begins.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use outlast_glue_rt::{Buffer, CallError, Channel, Interrupted, Reply, Request, Restorer, Word, RECREATE};

use crate::stubs::fs::operation;

/// The service, for one client of it. Clones are the same client.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    channel: Channel,
    open: RwLock<HashMap<u64, Arc<File>>>,
    last: AtomicU64,
}

/// An open file or folder. It keeps the folder that it was opened below, which may be closed meanwhile.
struct File {
    parent: Option<Arc<File>>,
    flags: u32,
    inode: u64,
    place: Mutex<Place>,
}

/// Where the component knows it, and how far it was read or written.
struct Place {
    epoch: u32,
    server: u64,
    offset: i64,
}

impl Client {
    pub fn new(channel: Channel) -> Self {
        Self { shared: Arc::new(Shared { channel, open: RwLock::default(), last: AtomicU64::new(0) }) }
    }

    /// How many descriptors are open.
    pub fn count(&self) -> usize {
        self.shared.open.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the descriptor and the file's number.
    pub fn fs_split(&self, parent: u64, name: &[u8], flags: u32) -> Result<(u64, u64), CallError> {
        let Shared { channel, open, last } = &*self.shared;
        let parent = match parent {
            0 => None,
            parent => Some(self.file(parent)?),
        };
        let mut restorer = Restorer::default();
        loop {
            let (epoch, above) = match &parent {
                Some(parent) => parent.current(channel)?,
                None => (channel.epoch(), 0),
            };
            let words = &[above, flags.into_word(), 0, 0];
            let operation = operation::FS_SPLIT;
            match channel.call(&Request { operation, epoch, words, bytes: name, ..Request::default() }) {
                Ok(reply) => {
                    let (server, inode) = (reply.words[0], reply.words[1]);
                    let place = Mutex::new(Place { epoch, server, offset: 0 });
                    let id = last.fetch_add(1, Ordering::Relaxed) + 1;
                    let file = Arc::new(File { parent, flags, inode, place });
                    open.write().unwrap_or_else(PoisonError::into_inner).insert(id, file);
                    return Ok((id, inode));
                }
                Err(interrupted) => restorer.again(interrupted)?,
            }
        }
    }

    pub fn fs_read(&self, file: u64, most: u32) -> Result<(i32, Vec<u8>, u32), CallError> {
        let reply = self.call(file, operation::FS_READ, &[most.into_word()], &[], |reply| reply.words[1] as i64)?;
        Ok((word(&reply, 0)?, reply.bytes.clone(), word(&reply, 1)?))
    }

    pub fn fs_write(&self, file: u64, data: &[u8]) -> Result<(i32, i64), CallError> {
        let reply = self.call(file, operation::FS_WRITE, &[], data, |reply| reply.words[1] as i64)?;
        Ok((word(&reply, 0)?, word(&reply, 1)?))
    }

    pub fn fs_get(&self, file: u64, data: &Buffer, most: u32) -> Result<(i32, u32), CallError> {
        let words = &[data.number().into_word(), most.into_word()];
        let reply = self.call(file, operation::FS_GET, words, &[], |reply| reply.words[1] as i64)?;
        Ok((word(&reply, 0)?, word(&reply, 1)?))
    }

    pub fn fs_put(&self, file: u64, data: &Buffer, length: u32) -> Result<(i32, i64), CallError> {
        let words = &[data.number().into_word(), length.into_word()];
        let reply = self.call(file, operation::FS_PUT, words, &[], |reply| reply.words[1] as i64)?;
        Ok((word(&reply, 0)?, word(&reply, 1)?))
    }

    pub fn fs_seek(&self, file: u64, whence: u32, to: i64) -> Result<(i64, i64), CallError> {
        let words = &[whence.into_word(), to.into_word()];
        let reply = self.call(file, operation::FS_SEEK, words, &[], |reply| reply.words[1] as i64)?;
        Ok((word(&reply, 0)?, word(&reply, 1)?))
    }

    pub fn fs_truncate(&self, file: u64, size: u64) -> Result<i32, CallError> {
        word(&self.call(file, operation::FS_TRUNCATE, &[size], &[], |_| 0)?, 0)
    }

    pub fn fs_rename(&self, file: u64, name: &[u8]) -> Result<i32, CallError> {
        word(&self.call(file, operation::FS_RENAME, &[], name, |_| 0)?, 0)
    }

    pub fn fs_remove(&self, file: u64) -> Result<i32, CallError> {
        word(&self.call(file, operation::FS_REMOVE, &[], &[], |_| 0)?, 0)
    }

    pub fn fs_status(&self, file: u64) -> Result<(i32, u64, u32), CallError> {
        let reply = self.call(file, operation::FS_STATUS, &[], &[], |_| 0)?;
        Ok((word(&reply, 0)?, word(&reply, 1)?, word(&reply, 2)?))
    }

    pub fn fs_list(&self, file: u64, most: u32, skip: u32) -> Result<(i32, Vec<u8>), CallError> {
        let reply = self.call(file, operation::FS_LIST, &[most.into_word(), skip.into_word()], &[], |_| 0)?;
        Ok((word(&reply, 0)?, reply.bytes.clone()))
    }

    pub fn fs_release(&self, file: u64) -> Result<i32, CallError> {
        let closed = self.file(file)?;
        let result = word(&self.call(file, operation::FS_RELEASE, &[], &[], |_| 0)?, 0);
        self.shared.open.write().unwrap_or_else(PoisonError::into_inner).remove(&file);
        // For files opened below it, it may have to be made again; the component does not know it now.
        closed.place.lock().unwrap_or_else(PoisonError::into_inner).epoch = 0;
        result
    }

    fn file(&self, file: u64) -> Result<Arc<File>, CallError> {
        let open = self.shared.open.read().unwrap_or_else(PoisonError::into_inner);
        open.get(&file).cloned().ok_or(CallError::Unknown(file))
    }

    /// A call about a file; `moved`: how far it moved the offset, as its reply says.
    fn call(
        &self,
        file: u64,
        operation: u32,
        words: &[u64],
        bytes: &[u8],
        moved: impl Fn(&Reply) -> i64,
    ) -> Result<Reply, CallError> {
        let channel = &self.shared.channel;
        let file = self.file(file)?;
        let mut place = file.place.lock().unwrap_or_else(PoisonError::into_inner);
        let mut restorer = Restorer::default();
        loop {
            file.recover(channel, &mut place)?;
            let all = [&[place.server], words].concat();
            let request = Request { operation, epoch: place.epoch, words: &all, bytes, ..Request::default() };
            match channel.call(&request) {
                Ok(reply) => {
                    place.offset += moved(&reply);
                    return Ok(reply);
                }
                Err(interrupted) => restorer.again(interrupted)?,
            }
        }
    }
}

impl File {
    /// The component's epoch, and its number for the file in it.
    fn current(&self, channel: &Channel) -> Result<(u32, u64), CallError> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        self.recover(channel, &mut place)?;
        Ok((place.epoch, place.server))
    }

    fn recover(&self, channel: &Channel, place: &mut Place) -> Result<(), CallError> {
        let mut restorer = Restorer::default();
        while place.epoch != channel.epoch() {
            let (epoch, above) = match &self.parent {
                Some(parent) => parent.current(channel)?,
                None => (channel.epoch(), 0),
            };
            match self.make_again(channel, epoch, above, place.offset) {
                Ok(server) => (place.epoch, place.server) = (epoch, server),
                Err(interrupted) => restorer.again(interrupted)?,
            }
        }
        Ok(())
    }

    /// By its number: its name may be another by now.
    #[cold]
    fn make_again(&self, channel: &Channel, epoch: u32, above: u64, offset: i64) -> Result<u64, Interrupted> {
        let words = &[above, self.flags.into_word(), self.inode, offset.into_word()];
        let (operation, flags) = (operation::FS_SPLIT, RECREATE);
        Ok(channel.call(&Request { operation, flags, epoch, words, ..Request::default() })?.words[0])
    }
}

/// No honest server sends what is no number.
fn word<W: Word>(reply: &Reply, at: usize) -> Result<W, CallError> {
    W::from_word(reply.words[at]).ok_or(CallError::Service(libc::EBADMSG))
}
