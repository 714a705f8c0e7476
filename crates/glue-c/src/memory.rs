//! What C hands over, as Rust has it.

use std::ffi::{c_char, c_int, c_void, CStr, OsStr, OsString};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

/// # Safety
/// `length` bytes live at `at`; none need to where it is 0.
pub unsafe fn bytes<'a>(at: *const c_void, length: usize) -> &'a [u8] {
    match length {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(at.cast(), length) },
    }
}

/// # Safety
/// As `bytes`, with `count` of `T`; or `at` is null: none.
pub unsafe fn slice<'a, T>(at: *const T, count: usize) -> &'a [T] {
    match count {
        0 => &[],
        _ if at.is_null() => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(at, count) },
    }
}

/// # Safety
/// `at` is a string of C's.
pub unsafe fn text(at: *const c_char) -> String {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
}

/// # Safety
/// `at` is a string of C's.
pub unsafe fn path(at: *const c_char) -> OsString {
    // SAFETY: the caller's promise.
    OsStr::from_bytes(unsafe { CStr::from_ptr(at) }.to_bytes()).to_owned()
}

/// # Safety
/// Null, or strings of C's up to a null.
pub unsafe fn paths(at: *const *const c_char) -> Vec<OsString> {
    let mut all = Vec::new();
    // SAFETY: the caller's promise; what is behind the null is not read.
    unsafe {
        while !at.is_null() && !(*at.add(all.len())).is_null() {
            all.push(path(*at.add(all.len())));
        }
    }
    all
}

/// # Safety
/// The number is negative, or that of an open file that stays open for as long as what is returned is used.
pub unsafe fn file<'a>(number: RawFd) -> Option<BorrowedFd<'a>> {
    // SAFETY: the caller's promise; -1 is the one value that it must not be.
    (number >= 0).then(|| unsafe { BorrowedFd::borrow_raw(number) })
}

/// A file of the caller's own, beside the one that was lent. None also where no descriptor can be had.
pub fn own(file: Option<BorrowedFd<'_>>) -> Option<OwnedFd> {
    file.and_then(|file| file.try_clone_to_owned().ok())
}

/// # Safety
/// `at` is null or can be written.
pub unsafe fn put<T>(at: *mut T, value: T) {
    if !at.is_null() {
        // SAFETY: the caller's promise.
        unsafe { at.write(value) };
    }
}

/// The pointer, or null and why.
///
/// # Safety
/// `error` is null or can be written.
pub unsafe fn made<T>(result: Result<T, c_int>, error: *mut c_int) -> *mut T {
    let (pointer, number) = match result {
        Ok(value) => (Box::into_raw(Box::new(value)), 0),
        Err(number) => (std::ptr::null_mut(), number),
    };
    // SAFETY: the caller's promise.
    unsafe { put(error, number) };
    pointer
}

/// # Safety
/// Null, or what `made` returned, given back once.
pub unsafe fn end<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(pointer) });
    }
}

/// # Safety
/// `to` has room for all of them.
pub unsafe fn copied(from: &[u8], to: *mut c_void) {
    if !from.is_empty() {
        // SAFETY: the caller's promise; what is read is a copy of its own.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.cast(), from.len()) };
    }
}
