//! Memory that can be revoked.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use outlast_glue_rt::{Channel, Mapped, Unusable};

use crate::error;
use crate::memory::{bytes, end, file, made};

#[no_mangle]
unsafe extern "C" fn glue_channel_map(
    channel: &Channel,
    descriptor: u64,
    number: c_int,
    length: usize,
    writable: c_int,
    error: *mut c_int,
) -> *mut Arc<Mapped> {
    // SAFETY: see the head of `lib.rs`.
    let mapped = match unsafe { file(number) } {
        None => Err(error::of_io(&std::io::Error::from_raw_os_error(libc::EBADF))),
        Some(file) => match channel.mappings().map(descriptor, file, length, writable != 0) {
            Ok(mapped) => mapped.ok_or(libc::ESTALE),
            Err(error) => Err(error::of_io(&error)),
        },
    };
    // SAFETY: as above.
    unsafe { made(mapped, error) }
}

fn outcome(result: Result<(), Unusable>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(Unusable::Revoked) => libc::ESTALE,
        Err(Unusable::ReadOnly) => libc::EACCES,
        Err(Unusable::Outside) => libc::ERANGE,
    }
}

#[no_mangle]
unsafe extern "C" fn glue_mapped_read(mapped: &Arc<Mapped>, at: usize, to: *mut c_void, count: usize) -> c_int {
    let room: &mut [u8] = match count {
        0 => &mut [],
        // SAFETY: see the head of `lib.rs`.
        _ => unsafe { std::slice::from_raw_parts_mut(to.cast(), count) },
    };
    outcome(mapped.read(at, room))
}

#[no_mangle]
unsafe extern "C" fn glue_mapped_write(mapped: &Arc<Mapped>, at: usize, from: *const c_void, count: usize) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    outcome(mapped.write(at, unsafe { bytes(from, count) }))
}

#[no_mangle]
unsafe extern "C" fn glue_mapped_end(mapped: *mut Arc<Mapped>) {
    // SAFETY: see the head of `lib.rs`.
    unsafe { end(mapped) }
}
