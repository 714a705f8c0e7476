//! A call as a service in C and its stub see it.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_glue_rt::{Call, Stop};

use crate::client::WORDS;
use crate::error;
use crate::memory::{bytes, put};

/// `struct glue_call`: and why it is not done, where a function said so.
pub struct CCall<'a, 'b> {
    pub call: &'a mut Call<'b>,
    pub stop: Option<Stop>,
}

impl CCall<'_, '_> {
    fn stopped(&mut self, stop: Stop) -> c_int {
        self.stop = Some(stop);
        error::STOP
    }

    pub fn outcome(&mut self, result: Result<(), Stop>) -> c_int {
        result.map_or_else(|stop| self.stopped(stop), |()| 0)
    }
}

#[no_mangle]
unsafe extern "C" fn glue_wait(call: &mut CCall<'_, '_>) -> c_int {
    call.stopped(Stop::Wait { until: None })
}

#[no_mangle]
unsafe extern "C" fn glue_wait_until(call: &mut CCall<'_, '_>, time: u64) -> c_int {
    let left = Duration::from_nanos(time.saturating_sub(now()));
    call.stopped(Stop::Wait { until: Instant::now().checked_add(left) })
}

/// CLOCK_MONOTONIC in nanoseconds.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills a live structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[no_mangle]
unsafe extern "C" fn glue_refuse(call: &mut CCall<'_, '_>, number: c_int) -> c_int {
    call.stopped(Stop::Refused(number))
}

#[no_mangle]
unsafe extern "C" fn glue_release(call: &mut CCall<'_, '_>, client: u32, id: u64) -> c_int {
    let released = call.call.release(client, id);
    call.outcome(released)
}

#[no_mangle]
unsafe extern "C" fn glue_client_of(call: &CCall<'_, '_>) -> u32 {
    call.call.client()
}

#[no_mangle]
unsafe extern "C" fn glue_wake(call: &mut CCall<'_, '_>, id: u64) {
    call.call.wake(id);
}

#[no_mangle]
unsafe extern "C" fn glue_operation_of(call: &CCall<'_, '_>) -> u32 {
    call.call.operation()
}

/// As many as every call has room for; those that did not come are 0.
#[no_mangle]
unsafe extern "C" fn glue_words(call: &CCall<'_, '_>) -> *const u64 {
    let words: &[u64; WORDS] = call.call.words();
    words.as_ptr()
}

#[no_mangle]
unsafe extern "C" fn glue_bytes(call: &CCall<'_, '_>, length: *mut usize) -> *const c_void {
    let came = call.call.bytes();
    // SAFETY: see the head of `lib.rs`.
    unsafe { put(length, came.len()) };
    came.as_ptr().cast()
}

#[no_mangle]
unsafe extern "C" fn glue_file(call: &CCall<'_, '_>) -> RawFd {
    call.call.lent_file().map_or(-1, |file| file.as_raw_fd())
}

#[no_mangle]
unsafe extern "C" fn glue_recreates(call: &CCall<'_, '_>) -> c_int {
    call.call.recreates().into()
}

#[no_mangle]
unsafe extern "C" fn glue_capability(call: &mut CCall<'_, '_>, id: u64) -> c_int {
    let capability = call.call.capability(id);
    call.outcome(capability)
}

#[no_mangle]
unsafe extern "C" fn glue_known(call: &mut CCall<'_, '_>, id: u64) -> c_int {
    let known = call.call.known(id);
    call.outcome(known)
}

#[no_mangle]
unsafe extern "C" fn glue_subtree(call: &mut CCall<'_, '_>, id: u64) -> c_int {
    let below = call.call.subtree(id);
    call.outcome(below)
}

#[no_mangle]
unsafe extern "C" fn glue_global_id(call: &mut CCall<'_, '_>, id: *mut u64) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    let found = call.call.global_id().map(|found| unsafe { put(id, found) });
    call.outcome(found)
}

#[no_mangle]
unsafe extern "C" fn glue_state(call: &CCall<'_, '_>, id: u64, state: *mut u32) -> c_int {
    // SAFETY: see the head of `lib.rs`.
    call.call.state(id).map(|known| unsafe { put(state, known) }).is_some().into()
}

#[no_mangle]
unsafe extern "C" fn glue_recorded(call: &CCall<'_, '_>, id: u64) -> u32 {
    call.call.recorded(id).unwrap_or(0)
}

#[no_mangle]
unsafe extern "C" fn glue_answer(call: &mut CCall<'_, '_>, at: u32, word: u64) {
    call.call.answer(at as usize, word);
}

#[no_mangle]
unsafe extern "C" fn glue_answer_bytes(call: &mut CCall<'_, '_>, from: *const c_void, length: usize) {
    // SAFETY: see the head of `lib.rs`.
    call.call.answer_bytes(unsafe { bytes(from, length) }.to_vec());
}

#[no_mangle]
unsafe extern "C" fn glue_answer_file(call: &mut CCall<'_, '_>, file: RawFd) {
    if file >= 0 {
        // SAFETY: the service gives it away.
        call.call.answer_file(Arc::new(unsafe { OwnedFd::from_raw_fd(file) }));
    }
}

#[no_mangle]
unsafe extern "C" fn glue_created(call: &mut CCall<'_, '_>, id: u64, state: u32, parent: u64) {
    call.call.created(id, state, parent);
}

#[no_mangle]
unsafe extern "C" fn glue_moved(call: &mut CCall<'_, '_>, id: u64) {
    call.call.moved(id);
}

#[no_mangle]
unsafe extern "C" fn glue_closed(call: &mut CCall<'_, '_>, id: u64, subtree: c_int) {
    call.call.closed(id, subtree != 0);
}

#[no_mangle]
unsafe extern "C" fn glue_keep(call: &mut CCall<'_, '_>) {
    call.call.keep();
}
