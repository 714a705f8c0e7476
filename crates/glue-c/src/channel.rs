//! Grants, and channels that are opened from them.

use std::ffi::{c_char, c_int};

use outlast_glue_rt::{Channel, Grant};

use crate::error;
use crate::memory::{end, made, text};

#[no_mangle]
unsafe extern "C" fn glue_grant_inherited(name: *const c_char, error: *mut c_int) -> *mut Grant {
    // SAFETY: see the head of `lib.rs`.
    unsafe { made(Grant::inherited(&text(name)).map_err(|error| error::of_io(&error)), error) }
}

#[no_mangle]
unsafe extern "C" fn glue_grant_end(grant: *mut Grant) {
    // SAFETY: see the head of `lib.rs`.
    unsafe { end(grant) }
}

/// A null grant is taken for one that could not be had: its error stays.
#[no_mangle]
unsafe extern "C" fn glue_channel_open(grant: *mut Grant, error: *mut c_int) -> *mut Channel {
    if grant.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: see the head of `lib.rs`.
    unsafe { made(Box::from_raw(grant).open().map_err(|error| error::of_io(&error)), error) }
}

#[no_mangle]
unsafe extern "C" fn glue_channel_close(channel: *mut Channel) {
    // SAFETY: see the head of `lib.rs`.
    unsafe { end(channel) }
}

#[no_mangle]
unsafe extern "C" fn glue_channel_spin(channel: &Channel, turns: u32) {
    channel.spin(turns);
}
