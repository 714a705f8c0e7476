//! The frame of a thread that is in a ring's call.

use bytemuck::{Pod, Zeroable};
use outlast_image::context::Registers;

/// What a frame is for.
pub mod purpose {
    pub const NONE: u32 = 0;
    /// io_uring_enter.
    pub const ENTER: u32 = 1;
    /// Makes what is ready, closes files that are registered no more.
    pub const CLOSE: u32 = 2;
    /// Another call that waits: what is ready is made meanwhile.
    pub const WAIT: u32 = 3;
}

/// Where a frame goes on once its call is back.
pub mod awaits {
    pub const NOTHING: u32 = 0;
    pub const REQUEST: u32 = 1;
    pub const WAIT: u32 = 2;
    pub const OTHER: u32 = 3;
}

/// A thread in a call of the ring's, which makes others in its place.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
pub struct Frame {
    /// One of [`purpose`].
    pub purpose: u32,
    pub thread: u32,
    /// What the thread goes on with.
    pub regs: Registers,
    /// The call's number.
    pub nr: u64,
    pub to_submit: u32,
    pub submitted: u32,
    pub wanted: u32,
    /// 1: waits for completions.
    pub waits: u32,
    /// Not 0: no more is submitted.
    pub is_over: u32,
    /// One of [`awaits`], and the request.
    pub awaits: u32,
    pub request: u32,
    /// How often it was looked what is ready.
    pub looks: u32,
    /// What the call returns unless it submitted anything.
    pub result: i64,
    /// When the wait ends, CLOCK_MONOTONIC in nanoseconds; 0: never.
    pub deadline: u64,
    /// The mask during the wait, and its length.
    pub mask: [u64; 2],
    /// For the wait.
    pub time: [u64; 2],
    /// The chain of links that is being submitted: its first and last request, as numbers plus one, and whether one of it cannot be.
    pub chain: [u32; 2],
    pub is_chain_bad: u32,
    pub unused: u32,
    /// Arguments of the calls made.
    pub scratch: [u64; 12],
}
