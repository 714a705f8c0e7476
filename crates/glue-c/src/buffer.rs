//! Bulk data: a client's buffers, and those that a call has.

use std::ffi::{c_int, c_void};

use outlast_glue_rt::{Buffer, CallError, Channel};

use crate::call::CCall;
use crate::error;
use crate::memory::{bytes, copied, end, made};

fn outcome(result: Result<(), CallError>) -> c_int {
    result.map_or_else(error::of_call, |()| 0)
}

#[no_mangle]
unsafe extern "C" fn glue_buffer_new(channel: &Channel, error: *mut c_int) -> *mut Buffer {
    // SAFETY: see the head of `lib.rs`.
    unsafe { made(channel.buffer().map_err(error::of_call), error) }
}

#[no_mangle]
unsafe extern "C" fn glue_buffer_number(buffer: &Buffer) -> u32 {
    buffer.number()
}

#[no_mangle]
unsafe extern "C" fn glue_buffer_read(buffer: &Buffer, at: usize, to: *mut c_void, count: usize) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    outcome(buffer.read(at, count).map(|read| unsafe { copied(&read, to) }))
}

#[no_mangle]
unsafe extern "C" fn glue_buffer_write(buffer: &Buffer, at: usize, from: *const c_void, count: usize) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    outcome(buffer.write(at, unsafe { bytes(from, count) }))
}

#[no_mangle]
unsafe extern "C" fn glue_buffer_end(buffer: *mut Buffer) {
    // SAFETY: see the head of `lib.rs`.
    unsafe { end(buffer) }
}

#[no_mangle]
unsafe extern "C" fn glue_lent_read(
    call: &mut CCall<'_, '_>,
    number: u32,
    at: usize,
    to: *mut c_void,
    count: usize,
) -> c_int {
    let read = call.call.lent(number).and_then(|lent| lent.read(at, count));
    // SAFETY: see the head of `lib.rs`.
    call.outcome(read.map(|read| unsafe { copied(&read, to) }))
}

#[no_mangle]
unsafe extern "C" fn glue_lent_write(
    call: &mut CCall<'_, '_>,
    number: u32,
    at: usize,
    from: *const c_void,
    count: usize,
) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    let bytes = unsafe { bytes(from, count) };
    let written = call.call.lent(number).and_then(|mut lent| lent.write(at, bytes));
    call.outcome(written)
}
