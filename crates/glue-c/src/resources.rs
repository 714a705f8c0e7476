//! Data of a service's that outlives its instances.

use std::ffi::{c_int, c_void};

use outlast_glue_rt::ResourceError;

use crate::call::CCall;
use crate::memory::{bytes, put};

fn outcome(result: Result<(), ResourceError>) -> c_int {
    result.map_or_else(ResourceError::errno, |()| 0)
}

#[no_mangle]
unsafe extern "C" fn glue_resource_key(call: &mut CCall<'_, '_>) -> u64 {
    call.call.resources().fresh()
}

#[no_mangle]
unsafe extern "C" fn glue_resource_create(
    call: &mut CCall<'_, '_>,
    key: u64,
    name: *const c_void,
    length: usize,
) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    outcome(call.call.resources().create(key, unsafe { bytes(name, length) }))
}

#[no_mangle]
unsafe extern "C" fn glue_resource_rename(
    call: &mut CCall<'_, '_>,
    key: u64,
    name: *const c_void,
    length: usize,
) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    outcome(call.call.resources().rename(key, unsafe { bytes(name, length) }))
}

#[no_mangle]
unsafe extern "C" fn glue_resource_remove(call: &mut CCall<'_, '_>, key: u64) -> c_int {
    outcome(call.call.resources().remove(key))
}

#[no_mangle]
unsafe extern "C" fn glue_resource_length(call: &mut CCall<'_, '_>, key: u64, length: *mut u64) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    outcome(call.call.resources().length(key).map(|long| unsafe { put(length, long) }))
}

#[no_mangle]
unsafe extern "C" fn glue_resource_read(
    call: &mut CCall<'_, '_>,
    key: u64,
    at: u64,
    to: *mut c_void,
    most: usize,
    got: *mut usize,
) -> c_int {
    outcome(call.call.resources().read(key, at, most).map(|read| {
        // SAFETY: see the head of `lib.rs`; no more than `most` were read.
        unsafe {
            std::ptr::copy_nonoverlapping(read.as_ptr(), to.cast(), read.len());
            put(got, read.len());
        }
    }))
}

#[no_mangle]
unsafe extern "C" fn glue_resource_write(
    call: &mut CCall<'_, '_>,
    key: u64,
    at: u64,
    from: *const c_void,
    count: usize,
) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    outcome(call.call.resources().write(key, at, unsafe { bytes(from, count) }))
}

#[no_mangle]
unsafe extern "C" fn glue_resource_truncate(call: &mut CCall<'_, '_>, key: u64, length: u64) -> c_int {
    outcome(call.call.resources().truncate(key, length))
}

#[no_mangle]
unsafe extern "C" fn glue_resource_each(
    call: &mut CCall<'_, '_>,
    visit: unsafe extern "C" fn(*mut c_void, u64, *const c_void, usize) -> c_int,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: a function of the service's, with what it asked for.
    let one = |(key, name): (u64, &[u8])| unsafe { visit(argument, key, name.as_ptr().cast(), name.len()) };
    call.call.resources().all().map(one).find(|number| *number != 0).unwrap_or(0)
}
