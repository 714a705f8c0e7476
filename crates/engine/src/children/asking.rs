//! What a process asks the supervisor, which knows all of the tree.

use super::{LOOKS, PATIENCE_NS};
use crate::control::control;
use crate::sys::{futex_wait, futex_wake};
use core::sync::atomic::Ordering::*;
use outlast_image::control::tree_request::{kind, ANSWERED, ASKED};

/// None: nobody answers. The caller has the engine's lock.
pub fn ask(kind: u32, about: [i32; 2]) -> Option<i32> {
    let c = control();
    c.tree_wanted.store(kind, Release);
    for (word, number) in c.tree_about.iter().zip(about) {
        word.store(number, Release);
    }
    c.tree_request.store(ASKED, Release);
    futex_wake(&c.tree_request);
    for _ in 0..LOOKS {
        if c.tree_request.load(Acquire) == ANSWERED {
            return Some(c.tree_answer.load(Acquire));
        }
        futex_wait(&c.tree_request, ASKED, Some(PATIENCE_NS));
    }
    None
}

/// Does the kernel know a process of the tree by another number than the program does?
pub fn numbers_differ() -> bool {
    control().numbers_differ.load(Acquire) != 0
}

/// By what number the kernel knows a process, or group, of the tree.
pub fn to_kernel(number: i32) -> Option<i32> {
    translated(kind::TO_KERNEL, number)
}

/// By what number the program knows a process of the tree.
pub fn to_program(number: i32) -> Option<i32> {
    translated(kind::TO_PROGRAM, number)
}

fn translated(kind: u32, number: i32) -> Option<i32> {
    let may_be = number > 0 && numbers_differ();
    may_be.then(|| ask(kind, [number, 0])).flatten().filter(|&other| other > 0)
}
