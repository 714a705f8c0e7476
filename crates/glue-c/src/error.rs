//! Errors as numbers: 0 none, positive a service's errno, negative the runtime's.

use std::ffi::{c_char, c_int};
use std::io;

use outlast_glue_rt::{CallError, Interrupted, SystemError};

/// Negative ones are so many times a kind, less an errno.
const KIND: c_int = 0x1_0000;

pub const UNKNOWN: c_int = -KIND;
pub const REFUSED: c_int = -2 * KIND;
pub const GIVEN_UP: c_int = -3 * KIND;
pub const POISONOUS: c_int = -4 * KIND;
pub const NO_SLOT: c_int = -5 * KIND;
pub const TOO_LONG: c_int = -6 * KIND;
pub const OUTDATED: c_int = -7 * KIND;
pub const SYSTEM: c_int = -8 * KIND;
pub const NOT_UP: c_int = -9 * KIND;
pub const NO_CHANNEL: c_int = -10 * KIND;
pub const FAULT: c_int = -11 * KIND;
pub const TORN: c_int = -12 * KIND;
pub const NO_BUFFER: c_int = -14 * KIND;
pub const IN_A_CALL: c_int = -15 * KIND;
/// Not one of the header's: a call's functions return it for the service to return, and say why themselves.
pub const STOP: c_int = -13 * KIND;

/// A kind with an errno that may be anything.
fn with(kind: c_int, errno: c_int) -> c_int {
    kind - if (1..KIND).contains(&errno) { errno } else { libc::EPROTO }
}

pub fn of_call(error: CallError) -> c_int {
    match error {
        CallError::Service(errno) => errno,
        CallError::Unknown(_) => UNKNOWN,
        CallError::Refused(errno) => with(REFUSED, errno),
        // Stubs in C always recover.
        CallError::GivenUp | CallError::Died => GIVEN_UP,
        CallError::Poisonous(_) => POISONOUS,
        CallError::NoSlot => NO_SLOT,
        CallError::TooLong(_) => TOO_LONG,
        CallError::NoBuffer => NO_BUFFER,
        CallError::InACall => IN_A_CALL,
        CallError::Outdated => OUTDATED,
    }
}

pub fn of_interrupted(interrupted: Interrupted) -> c_int {
    match interrupted {
        Interrupted::Fault { torn: false } => FAULT,
        Interrupted::Fault { torn: true } => TORN,
        Interrupted::Failed(error) => of_call(error),
    }
}

pub fn of_system(error: &SystemError) -> c_int {
    match error {
        SystemError::Start(_, error) | SystemError::Memory(error) => of_io(error),
        SystemError::NotUp(..) => NOT_UP,
        SystemError::NoChannel(_) => NO_CHANNEL,
        SystemError::Module(_) | SystemError::Ended(_) => GIVEN_UP,
    }
}

pub fn of_io(error: &io::Error) -> c_int {
    let known = match error.kind() {
        io::ErrorKind::PermissionDenied => libc::EPERM,
        io::ErrorKind::NotFound => libc::ENOENT,
        io::ErrorKind::InvalidData => libc::EINVAL,
        _ => libc::EIO,
    };
    with(SYSTEM, error.raw_os_error().unwrap_or(known))
}

/// What a stub returned out of a recovery.
pub fn interruption(number: c_int) -> Interrupted {
    Interrupted::Failed(match kind(number) {
        _ if number > 0 => CallError::Service(number),
        FAULT => return Interrupted::Fault { torn: false },
        TORN => return Interrupted::Fault { torn: true },
        REFUSED => CallError::Refused(REFUSED - number),
        GIVEN_UP => CallError::GivenUp,
        POISONOUS => CallError::Poisonous(0),
        NO_SLOT => CallError::NoSlot,
        TOO_LONG => CallError::TooLong(0),
        OUTDATED => CallError::Outdated,
        NO_BUFFER => CallError::NoBuffer,
        IN_A_CALL => CallError::InACall,
        _ => CallError::Unknown(0),
    })
}

/// Without its errno.
fn kind(number: c_int) -> c_int {
    -(number.unsigned_abs() as c_int / KIND) * KIND
}

#[no_mangle]
extern "C" fn glue_errno(error: c_int) -> c_int {
    match kind(error) {
        _ if error >= 0 => error,
        kind @ (SYSTEM | REFUSED) => kind - error,
        NOT_UP => libc::ETIMEDOUT,
        NO_CHANNEL => libc::EUSERS,
        _ => match interruption(error) {
            Interrupted::Failed(error) => error.errno(),
            Interrupted::Fault { .. } => libc::EAGAIN,
        },
    }
}

/// What it is and what to do.
pub fn described(error: c_int) -> String {
    match kind(error) {
        _ if error == 0 => "no error".to_string(),
        UNKNOWN => "the descriptor is not open here: use one that this client created and has not closed".into(),
        POISONOUS => "the component died again and again while it executed this very call: do not repeat it".into(),
        TOO_LONG => "more bytes or words than a call carries: make several calls".into(),
        NOT_UP => "the component did not come up: run its program alone to see what it says".into(),
        NO_CHANNEL => "the component has no channel left: at most 16 clients can have one".into(),
        SYSTEM => io::Error::from_raw_os_error(SYSTEM - error).to_string(),
        _ => match interruption(error) {
            Interrupted::Failed(error) => error.to_string(),
            Interrupted::Fault { .. } => "the component died: make the call again".into(),
        },
    }
}

#[no_mangle]
unsafe extern "C" fn glue_describe(error: c_int, text: *mut c_char, size: usize) {
    let sentence = described(error);
    let Some(most) = size.checked_sub(1) else { return };
    let length = (0..=most.min(sentence.len())).rev().find(|at| sentence.is_char_boundary(*at)).unwrap_or(0);
    // SAFETY: `size` bytes can be written there.
    unsafe {
        std::ptr::copy_nonoverlapping(sentence.as_ptr().cast(), text, length);
        text.add(length).write(0);
    }
}
