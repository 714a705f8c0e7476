//! Calls that a predecessor made on objects that were made anew: the new ones are as they were before.

use super::{is_made, kind};
use crate::control::degrade;
use crate::operation::Operation;
use crate::scratch;
use crate::state::Engine;
use crate::sys::{nr, syscall};
use outlast_calls::row;
use outlast_image::context::{pending_kind, PendingCall};
use outlast_image::degradation::Degradation;
use outlast_image::descriptor::descriptor_kind;

/// Is it to be made again, whatever became of it?
fn is_void(e: &Engine, number: u64, fd: i32) -> bool {
    let names_it = row(number).is_some_and(|row| row.descriptors() & 1 != 0);
    // What a signalfd or an inotify has given is nowhere else.
    names_it && is_made(fd) && !matches!(e.fds.origins.of(fd).kind, kind::SIGNALS | kind::WATCHES)
}

/// The call that the commit stands before is not done as far as objects are concerned that were made anew.
pub fn forget_what_was_done(e: &mut Engine, pending: &PendingCall, operation: &mut Operation) {
    if !matches!(pending.kind, pending_kind::RING | pending_kind::NOTED) {
        return;
    }
    let number = pending.nr as u64;
    let (first, third) = (pending.args[0] as i32, pending.args[2] as i32);
    if number == nr::SPLICE && !is_made(third) {
        // What it moved has arrived, and is not to lie in the pipe any more.
        drain(first, operation.done + operation.found().unwrap_or(0).max(0) as u64);
    } else if number == nr::SPLICE && !is_made(first) && operation.found().is_some_and(|n| n > 0) {
        // What it took from there is nowhere any more.
        operation.forget(pending.offset);
        if e.fds.kind(first) != descriptor_kind::REGULAR {
            degrade(Degradation::DescriptorLost);
        }
    } else if number == nr::SPLICE || is_void(e, number, first) {
        operation.forget(pending.offset);
    }
}

fn drain(fd: i32, mut bytes: u64) {
    let buf = scratch::object_buffer();
    while is_made(fd) && bytes > 0 {
        // SAFETY: takes from a pipe that was just made; at most as many bytes as there is room for.
        match unsafe { syscall!(nr::READ, fd, buf.as_mut_ptr(), bytes.min(buf.len() as u64)) } {
            n @ 1.. => bytes -= n as u64,
            _ => return,
        }
    }
}
