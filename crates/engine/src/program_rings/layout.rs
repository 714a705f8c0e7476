//! What of a ring lies where. All of it is memory of the program's: what the program maps of the ring, and the engine's notes in a region
//! of their own, so that commits keep them and rollbacks put them back as they do with any memory. What is read there is
//! untrusted, as the program could have written it.

use super::frame::Frame;
use crate::user;
use bytemuck::{Pod, Zeroable};

/// `mmap` offsets.
pub const OFF_SQ_RING: u64 = 0;
pub const OFF_CQ_RING: u64 = 0x800_0000;
pub const OFF_SQES: u64 = 0x1000_0000;

/// Where the words of both rings lie, in one mapping.
pub mod word {
    pub const SQ_HEAD: u64 = 0;
    pub const SQ_TAIL: u64 = 64;
    pub const CQ_HEAD: u64 = 128;
    pub const CQ_TAIL: u64 = 192;
    pub const SQ_MASK: u64 = 256;
    pub const CQ_MASK: u64 = 260;
    pub const SQ_ENTRIES: u64 = 264;
    pub const CQ_ENTRIES: u64 = 268;
    pub const SQ_DROPPED: u64 = 272;
    pub const SQ_FLAGS: u64 = 276;
    pub const CQ_FLAGS: u64 = 280;
    pub const CQ_OVERFLOW: u64 = 284;
    pub const CQES: u64 = 320;
}

pub const CQE_LEN: u64 = 16;
pub const SQE_LEN: u64 = 64;

/// Offset of the submission array: behind the completions.
pub fn array(completions: u32) -> u64 {
    word::CQES + completions as u64 * CQE_LEN
}

/// The region of notes: a page of code, the head, frames, requests, what is waited for.
pub mod notes {
    use super::{Frame, Head, Request};
    pub const HEAD: u64 = 4096;
    pub const FRAMES: u64 = HEAD + 4096;
    /// Threads that are inside the ring's calls at the same time.
    pub const FRAME_COUNT: u32 = 64;
    pub const REQUESTS: u64 = (FRAMES + FRAME_COUNT as u64 * size_of::<Frame>() as u64).next_multiple_of(4096);
    const _: () = assert!(size_of::<Head>() <= 4096 && size_of::<Request>() == 128);

    /// Of the `struct pollfd`s, one for each request and more for what else is waited for.
    pub const fn polled(requests: u32) -> u64 {
        REQUESTS + requests as u64 * size_of::<Request>() as u64
    }

    pub const fn len(requests: u32) -> u64 {
        (polled(requests) + (requests as u64 + super::MORE_POLLED) * 8).next_multiple_of(4096)
    }
}

/// Requests that a ring has room for at most: twice as many as completions.
pub const MOST_REQUESTS: u32 = 1 << 17;

/// Entries that a wait may need beside those of the requests.
pub const MORE_POLLED: u64 = 1024;

/// Tells a region of notes.
pub const MAGIC: u64 = 0x676e_6972_7473_616c;

/// What is noted of the ring as a whole.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
pub struct Head {
    pub magic: u64,
    pub entries: u32,
    pub completions: u32,
    /// `IORING_SETUP_*`.
    pub flags: u32,
    /// Requests that there is room for.
    pub requests: u32,
    /// Where the program has mapped what; 0: not yet. Completions lie in the submission ring's mapping unless they have one.
    pub sq_at: u64,
    pub cq_at: u64,
    pub sqes_at: u64,
    /// Registered files: numbers of descriptors kept for them, -1 for none; and those that are to be closed.
    pub files_at: u64,
    /// Registered buffers: address and length of each.
    pub buffers_at: u64,
    pub files: u32,
    pub stale: u32,
    pub buffers: u32,
    /// 1: made with IORING_SETUP_R_DISABLED and not enabled yet.
    pub is_disabled: u32,
    /// The eventfd that is told of completions, plus one; 0: none.
    pub eventfd: u32,
    /// Completions that it has not been told of.
    pub untold: u32,
    /// No request from this one on was ever in use.
    pub end: u32,
    /// Requests in use.
    pub used: u32,
    /// Those that wait for a descriptor or a time.
    pub waiting: u32,
    /// Those that wait for all before them (IOSQE_IO_DRAIN), and those behind them.
    pub drained: u32,
    /// The next request's place in the order of submission.
    pub sequence: u32,
    /// Completions that were posted or have overflowed.
    pub posted: u32,
    /// Queues of requests, each by its first and last, as numbers plus one: ready to be made; completed without room to say so.
    pub ready: [u32; 2],
    pub overflown: [u32; 2],
    /// The first of those that are free again, as a number plus one.
    pub free: u32,
    pub unused: u32,
    /// What is written to the eventfd.
    pub one: u64,
}

/// `struct io_uring_sqe`, with the unions flattened to what is used.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
pub struct Entry {
    pub opcode: u8,
    pub flags: u8,
    pub ioprio: u16,
    pub fd: i32,
    pub off: u64,
    pub addr: u64,
    pub len: u32,
    pub op_flags: u32,
    pub user_data: u64,
    pub buffer: u16,
    pub personality: u16,
    /// `splice_fd_in`, `file_index`, or the low half of `addr_len`.
    pub extra: u32,
    pub addr3: u64,
    pub pad: u64,
}

/// Where a request is.
pub mod state {
    pub const FREE: u32 = 0;
    pub const READY: u32 = 1;
    /// Waits for `events`, or for `deadline`.
    pub const WAITING: u32 = 2;
    /// Follows another one that is not done.
    pub const LINKED: u32 = 3;
    /// Waits for all before it.
    pub const DRAINED: u32 = 4;
    /// A thread makes its call.
    pub const MADE: u32 = 5;
    /// Its completion waits for room.
    pub const OVERFLOWN: u32 = 6;
}

/// An entry that was submitted and is not completed.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
pub struct Request {
    pub entry: Entry,
    /// One of [`state`].
    pub state: u32,
    /// The next one in its queue, as a number plus one; and the one that follows by a link.
    pub next: u32,
    pub link: u32,
    pub sequence: u32,
    /// What poll(2) is asked for; 0: only the time counts.
    pub events: u32,
    /// What it answered.
    pub found: u32,
    pub result: i32,
    /// Of the completion.
    pub cqe_flags: u32,
    /// A time-out's, on CLOCK_MONOTONIC in nanoseconds, and how long it lasts; 0: none.
    pub deadline: u64,
    pub duration: u64,
    /// The number of completions with which a time-out is over; of a linked one: the request that it is about, as a number plus one.
    pub target: u32,
    /// Bytes transferred by earlier calls.
    pub done: u32,
    /// The time-out that is linked to it, as a number plus one.
    pub guard: u32,
    /// The descriptor that is kept of its file since the program has closed the file's own, plus one; 0: none.
    pub kept: u32,
}

/// A ring, by the address of its notes.
#[derive(Clone, Copy)]
pub struct Notes {
    pub at: u64,
}

impl Notes {
    pub fn head(&self) -> Option<Head> {
        user::read::<Head>(self.at + notes::HEAD)
            .filter(|head| head.magic == MAGIC && head.end <= head.requests && head.requests <= MOST_REQUESTS)
    }

    pub fn set_head(&self, head: &Head) -> bool {
        user::write(self.at + notes::HEAD, head)
    }

    pub fn request_at(&self, i: u32) -> u64 {
        self.at + notes::REQUESTS + i as u64 * size_of::<Request>() as u64
    }

    pub fn request(&self, i: u32) -> Option<Request> {
        user::read(self.request_at(i))
    }

    pub fn set_request(&self, i: u32, request: &Request) {
        user::write(self.request_at(i), request);
    }

    pub fn frame_at(&self, i: u32) -> u64 {
        self.at + notes::FRAMES + i as u64 * size_of::<Frame>() as u64
    }

    pub fn frame(&self, at: u64) -> Option<Frame> {
        user::read(at)
    }

    pub fn set_frame(&self, at: u64, frame: &Frame) {
        user::write(at, frame);
    }

    /// The frame at this address, if there is one there.
    pub fn is_frame(&self, at: u64) -> bool {
        let offset = at.wrapping_sub(self.frame_at(0));
        offset < notes::FRAME_COUNT as u64 * size_of::<Frame>() as u64 && offset % size_of::<Frame>() as u64 == 0
    }
}

impl Head {
    /// Where the mapping with the completions begins; 0: there is none.
    pub fn completions_at(&self) -> u64 {
        if self.cq_at != 0 {
            self.cq_at
        } else {
            self.sq_at
        }
    }

    pub fn sq_word(&self, offset: u64) -> Option<u32> {
        if self.sq_at == 0 {
            return None;
        }
        user::read(self.sq_at + offset)
    }

    pub fn set_sq_word(&self, offset: u64, value: u32) {
        if self.sq_at != 0 {
            user::write(self.sq_at + offset, &value);
        }
    }

    /// Completions that the program has not taken.
    pub fn completed(&self) -> u32 {
        let at = self.completions_at();
        if at == 0 {
            return 0;
        }
        let word = |offset| user::read::<u32>(at + offset).unwrap_or(0);
        word(word::CQ_TAIL).wrapping_sub(word(word::CQ_HEAD))
    }
}
