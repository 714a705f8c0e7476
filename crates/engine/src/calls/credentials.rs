//! SCM_CREDENTIALS and SO_PEERCRED (unix(7)): the number of who sends on a socket of the machine's own, or is at its other end, where the
//! kernel knows a process by another number than the program does. Who named itself by what it knows would be refused.

use super::control_data::{parts, CREDENTIALS};
use crate::children::asking;
use crate::dispatch::{interruptible, Call};
use crate::numbers;
use crate::sys::nr;
use crate::thread::Thread;
use crate::user;

const SOL_SOCKET: i32 = 1;
const SO_PEERCRED: i32 = 17;

fn may_differ() -> bool {
    numbers::differ() || asking::numbers_differ()
}

/// What is sent names the kernel's number.
pub fn to_kernel(control: &mut [u8]) {
    if may_differ() {
        translate(control, |number| numbers::to_kernel(number as u64) as i32);
    }
}

/// What was received, and lies with the program, names the program's number.
pub fn received(at: u64, len: u64) {
    if len == 0 || !may_differ() {
        return;
    }
    // The kernel passes little more than 253 descriptors.
    let mut control = [0; 2048];
    let control = &mut control[..len.min(2048) as usize];
    if user::read_bytes(at, control) && translate(control, as_known) {
        user::write_bytes(at, control);
    }
}

fn as_known(number: i32) -> i32 {
    match numbers::to_program(number.into()) as i32 {
        same if same == number => asking::to_program(number).unwrap_or(number),
        own => own,
    }
}

/// The number stands first. Is there any?
fn translate(control: &mut [u8], other: impl Fn(i32) -> i32) -> bool {
    let mut places = [0; 8];
    let found = parts(control).filter(|(kind, data)| *kind == CREDENTIALS && data.len() >= 4);
    let count = found.zip(&mut places).map(|((_, data), place)| *place = data.start).count();
    for at in &places[..count] {
        if let Some(Ok(number)) = control.get_mut(*at..at + 4).map(<&mut [u8; 4]>::try_from) {
            *number = other(i32::from_le_bytes(*number)).to_le_bytes();
        }
    }
    count > 0
}

/// Does the call ask who is at the other end?
pub fn asks(call: &Call) -> bool {
    call.nr == nr::GETSOCKOPT && (call.args[1] as i32, call.args[2] as i32) == (SOL_SOCKET, SO_PEERCRED) && may_differ()
}

/// Asks that.
pub fn ask(t: &mut Thread, call: &Call) -> i64 {
    let r = interruptible(t, call);
    let [.., value, len, _] = call.args;
    if r == 0 && user::read::<u32>(len).is_some_and(|len| len >= 4) {
        if let Some(number) = user::read::<i32>(value).filter(|&number| number > 0) {
            user::write(value, &as_known(number));
        }
    }
    r
}
