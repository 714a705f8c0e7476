//! What is submitted: operation codes and the entry's layout.

/// Operation codes.
pub mod op {
    pub const READ: u8 = 22;
    pub const WRITE: u8 = 23;
    pub const SEND: u8 = 26;
    pub const WRITEV: u8 = 2;
    pub const SENDMSG: u8 = 9;
    pub const RECVMSG: u8 = 10;
    pub const ACCEPT: u8 = 13;
    pub const ASYNC_CANCEL: u8 = 14;
    pub const CONNECT: u8 = 16;
    pub const OPENAT: u8 = 18;
    pub const OPENAT2: u8 = 28;
    pub const SPLICE: u8 = 30;
    pub const RENAMEAT: u8 = 35;
    pub const UNLINKAT: u8 = 36;
    pub const MKDIRAT: u8 = 37;
    pub const SYMLINKAT: u8 = 38;
    pub const LINKAT: u8 = 39;
}

/// `struct io_uring_sqe`, with the unions flattened to what is used.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Entry {
    pub opcode: u8,
    pub flags: u8,
    pub ioprio: u16,
    pub fd: i32,
    pub off: u64,
    pub addr: u64,
    pub len: u32,
    /// `rw_flags`, `msg_flags`, `open_flags`, `rename_flags` …
    pub op_flags: u32,
    pub user_data: u64,
    pub pad: [u64; 3],
}
