//! Descriptors that are tracked, and their recovery.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, MutexGuard};

use outlast_glue_rt::Inner;

use crate::client::{remembered, CReply, Client, Remembered};
use crate::error;
use crate::memory::{end, put, slice};

type Descriptor = outlast_glue_rt::Descriptor<Remembered>;

/// `struct glue_lost`.
#[repr(C)]
pub struct Lost {
    pub id: u64,
    pub parent: u64,
    pub epoch: u32,
    pub creator: u32,
    pub state: u32,
    pub file: RawFd,
    pub fields: *const u64,
    pub bytes: *const c_void,
    pub length: usize,
    pub asked: *const u32,
}

/// `struct glue_new`.
#[repr(C)]
pub struct Created {
    pub id: *const u64,
    pub server: u64,
    pub parent: u64,
    pub creator: u32,
    pub file: RawFd,
    pub fields: *const u64,
    pub bytes: *const c_void,
    pub length: usize,
}

/// `struct glue_note`.
#[repr(C)]
pub struct Note {
    pub field: u32,
    pub add: c_int,
    pub value: u64,
}

fn pointer<E>(descriptor: Result<Arc<Descriptor>, E>) -> *const Descriptor {
    descriptor.map_or(std::ptr::null(), Arc::into_raw)
}

#[no_mangle]
unsafe extern "C" fn glue_open(client: &Client, id: u64) -> *const Descriptor {
    pointer(client.descriptors.open(id).map(|held| Arc::clone(&held)))
}

#[no_mangle]
unsafe extern "C" fn glue_get(client: &Client, id: u64) -> *const Descriptor {
    pointer(client.descriptors.get(id))
}

#[no_mangle]
unsafe extern "C" fn glue_put(descriptor: *const Descriptor) {
    if !descriptor.is_null() {
        // SAFETY: see the head of `lib.rs`.
        drop(unsafe { Arc::from_raw(descriptor) });
    }
}

#[no_mangle]
unsafe extern "C" fn glue_id(descriptor: &Descriptor) -> u64 {
    descriptor.id
}

#[no_mangle]
unsafe extern "C" fn glue_server(descriptor: &Descriptor) -> u64 {
    descriptor.server()
}

#[no_mangle]
unsafe extern "C" fn glue_valid(descriptor: &Descriptor, epoch: u32, server: *mut u64) -> c_int {
    match descriptor.valid(epoch) {
        Some(known) => {
            // SAFETY: see the head of `lib.rs`.
            unsafe { put(server, known) };
            1
        }
        None => 0,
    }
}

type Attempt = unsafe extern "C" fn(&Client, *const Lost, *mut u64) -> c_int;

#[no_mangle]
unsafe extern "C" fn glue_recover(
    client: &Client,
    descriptor: &Descriptor,
    asked: *const u32,
    attempt: Attempt,
    epoch: *mut u32,
    server: *mut u64,
) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    let wanted = unsafe { asked.as_ref() }.copied();
    let one = |inner: &Inner<Remembered>, epoch: u32| {
        let data = &inner.data;
        let lost = Lost {
            id: descriptor.id,
            parent: inner.parent,
            epoch,
            creator: inner.creator,
            state: inner.state,
            file: data.file.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            fields: data.fields.as_ptr(),
            bytes: data.bytes.as_ptr().cast(),
            length: data.bytes.len(),
            asked,
        };
        let mut server = 0;
        // SAFETY: a function of the stub's; what it is shown lives meanwhile, under the descriptor's lock.
        match unsafe { attempt(client, &lost, &mut server) } {
            0 => Ok(server),
            number => Err(error::interruption(number)),
        }
    };
    match descriptor.recover(&client.channel, wanted, one) {
        Ok((now, known)) => {
            // SAFETY: as above.
            unsafe {
                put(epoch, now);
                put(server, known);
            }
            0
        }
        Err(error) => error::of_call(error),
    }
}

#[no_mangle]
unsafe extern "C" fn glue_insert(client: &Client, created: &Created, reply: &CReply) -> u64 {
    let from = (created.bytes, created.length);
    // SAFETY: see the head of `lib.rs`.
    let (id, data) = unsafe { (created.id.as_ref(), remembered(created.fields, client.fields, from, created.file)) };
    let (server, creator, parent) = (created.server, created.creator, created.parent);
    client.descriptors.insert(id.copied(), server, creator, parent, data, &reply.tracked())
}

fn noted(data: &mut Remembered, notes: &[Note]) {
    for note in notes {
        // Stubs name fields that there are.
        let field = &mut data.fields[note.field as usize];
        *field = if note.add != 0 { field.wrapping_add(note.value) } else { note.value };
    }
}

#[no_mangle]
unsafe extern "C" fn glue_track(
    descriptor: &Descriptor,
    reply: &CReply,
    operation: u32,
    notes: *const Note,
    count: usize,
) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    let notes = unsafe { slice(notes, count) };
    descriptor.track(&reply.tracked(), operation, |data| noted(data, notes)).into()
}

#[no_mangle]
unsafe extern "C" fn glue_track_sum(
    descriptor: &Descriptor,
    reply: &CReply,
    operation: u32,
    happened: c_int,
    notes: *const Note,
    count: usize,
) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    let notes = unsafe { slice(notes, count) };
    descriptor.track_sum(&reply.tracked(), operation, happened != 0, |data| noted(data, notes)).into()
}

#[no_mangle]
unsafe extern "C" fn glue_serial<'a>(descriptor: &'a Descriptor) -> *mut MutexGuard<'a, ()> {
    Box::into_raw(Box::new(descriptor.serial()))
}

#[no_mangle]
unsafe extern "C" fn glue_serial_end(turn: *mut MutexGuard<'_, ()>) {
    // SAFETY: see the head of `lib.rs`; the stub puts the descriptor later.
    unsafe { end(turn) }
}

#[no_mangle]
unsafe extern "C" fn glue_each_child(
    client: &Client,
    descriptor: &Descriptor,
    visit: unsafe extern "C" fn(&Client, &Descriptor) -> c_int,
) -> c_int {
    for child in client.descriptors.children(descriptor) {
        // SAFETY: a function of the stub's.
        let number = unsafe { visit(client, &child) };
        if number != 0 {
            return number;
        }
    }
    0
}

#[no_mangle]
unsafe extern "C" fn glue_forget(client: &Client, id: u64, subtree: c_int, keep: c_int) {
    client.descriptors.close(id, subtree != 0, keep != 0);
}
