//! A client's stub: its channel, what it remembers, and calls.

use std::ffi::{c_int, c_void};
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use outlast_glue_rt::{CallError, Channel, Descriptors, Interrupted, Reply, Request, Restorer};

use crate::error;
use crate::memory::{bytes, file, own, slice};

pub const WORDS: usize = 8;
pub const BYTES: usize = 4096;

/// `struct glue_client`.
pub struct Client {
    pub channel: Channel,
    pub descriptors: Descriptors<Remembered>,
    pub fields: usize,
}

/// What is remembered of a descriptor, whatever its interface is.
#[derive(Default)]
pub struct Remembered {
    pub fields: Vec<u64>,
    pub bytes: Vec<u8>,
    pub file: Option<OwnedFd>,
}

/// `struct glue_request`.
#[repr(C)]
pub struct CRequest {
    pub operation: u32,
    pub flags: u32,
    pub epoch: u32,
    pub count: u32,
    pub wanted: u64,
    pub words: *const u64,
    pub bytes: *const c_void,
    pub length: usize,
    pub file: RawFd,
    pub answer: *mut c_void,
    pub room: u64,
}

/// `struct glue_reply`.
#[repr(C)]
pub struct CReply {
    pub words: [u64; WORDS],
    pub length: usize,
    pub file: RawFd,
    pub tracked: c_int,
    pub sequence: u64,
    pub epoch: u32,
}

impl CReply {
    /// As far as descriptors are tracked by it.
    pub fn tracked(&self) -> Reply {
        let (sequence, epoch, tracked) = (self.sequence, self.epoch, self.tracked != 0);
        Reply { words: self.words, bytes: Vec::new(), file: None, sequence, tracked, epoch }
    }
}

#[no_mangle]
unsafe extern "C" fn glue_client_new(channel: &Channel, fields: usize) -> *const Client {
    Arc::into_raw(Arc::new(Client { channel: channel.clone(), descriptors: Descriptors::default(), fields }))
}

#[no_mangle]
unsafe extern "C" fn glue_client_end(client: *const Client) {
    if !client.is_null() {
        // SAFETY: see the head of `lib.rs`.
        drop(unsafe { Arc::from_raw(client) });
    }
}

#[no_mangle]
unsafe extern "C" fn glue_client_count(client: &Client) -> usize {
    client.descriptors.count()
}

/// U0. The client is not held by its listener, which ends when it has gone.
#[no_mangle]
unsafe extern "C" fn glue_listen(client: *const Client, recover: unsafe extern "C" fn(*const Client, u64) -> c_int) {
    // SAFETY: see the head of `lib.rs`; the count is raised for what is made of the pointer here.
    let held = unsafe {
        Arc::increment_strong_count(client);
        Arc::from_raw(client)
    };
    let weak = Arc::downgrade(&held);
    held.channel.listen(move |id| {
        let client = weak.upgrade()?;
        // SAFETY: a function of the stub's, and a client that lives meanwhile.
        Some(unsafe { recover(Arc::as_ptr(&client), id) } != 0)
    });
}

#[no_mangle]
unsafe extern "C" fn glue_epoch(client: &Client) -> u32 {
    client.channel.epoch()
}

#[no_mangle]
unsafe extern "C" fn glue_call(client: &Client, request: &CRequest, reply: *mut CReply) -> c_int {
    if request.count as usize > WORDS || request.length > BYTES {
        // SAFETY: see the head of `lib.rs`.
        unsafe { reply.write(empty()) };
        return error::of_call(CallError::TooLong(BYTES));
    }
    // SAFETY: as above.
    let made = unsafe {
        Request {
            operation: request.operation,
            flags: request.flags,
            epoch: request.epoch,
            wanted: request.wanted,
            words: slice(request.words, request.count as usize),
            bytes: bytes(request.bytes, request.length),
            file: file(request.file),
        }
    };
    let outcome = client.channel.call(&made).and_then(|reply| returned(reply, request));
    let (returned, number) = match outcome {
        Ok(returned) => (returned, 0),
        Err(interrupted) => (empty(), error::of_interrupted(interrupted)),
    };
    // SAFETY: as above; whatever was there is no value of Rust's.
    unsafe { reply.write(returned) };
    number
}

fn empty() -> CReply {
    CReply { words: [0; WORDS], length: 0, file: -1, tracked: 0, sequence: 0, epoch: 0 }
}

/// More bytes than there is room for are what no sound server sends.
fn returned(reply: Reply, request: &CRequest) -> Result<CReply, Interrupted> {
    let room = usize::try_from(request.room as i64).unwrap_or(0);
    let length = if request.answer.is_null() { 0 } else { reply.bytes.len() };
    if length > room {
        return Err(Interrupted::Failed(CallError::Service(libc::EBADMSG)));
    }
    if length > 0 {
        // SAFETY: so many bytes have room there; see the head of `lib.rs`.
        unsafe { std::ptr::copy_nonoverlapping(reply.bytes.as_ptr(), request.answer.cast(), length) };
    }
    // Nobody else has it: it came with this reply.
    let file = reply.file.and_then(Arc::into_inner).map_or(-1, IntoRawFd::into_raw_fd);
    let Reply { words, sequence, tracked, epoch, .. } = reply;
    Ok(CReply { words, length, file, tracked: tracked.into(), sequence, epoch })
}

#[no_mangle]
unsafe extern "C" fn glue_again(torn: &mut u32, number: c_int) -> c_int {
    let mut restorer = Restorer::seen(*torn);
    let again = restorer.again(error::interruption(number));
    *torn = restorer.torn();
    match again {
        Ok(()) => 0,
        // As it came: a number made from it may say less.
        Err(CallError::Poisonous(_)) => error::of_call(CallError::Poisonous(0)),
        Err(_) => number,
    }
}

/// What a creation leaves to be remembered.
///
/// # Safety
/// Pointers and file are the stub's, as in `struct glue_new`.
pub unsafe fn remembered(fields: *const u64, count: usize, from: (*const c_void, usize), number: RawFd) -> Remembered {
    // SAFETY: the caller's promise.
    unsafe {
        Remembered {
            fields: slice(fields, count).to_vec(),
            bytes: bytes(from.0, from.1).to_vec(),
            file: own(file(number)),
        }
    }
}
