//! Operation codes, and which of them are served.

pub const NOP: u8 = 0;
pub const READV: u8 = 1;
pub const WRITEV: u8 = 2;
pub const FSYNC: u8 = 3;
pub const READ_FIXED: u8 = 4;
pub const WRITE_FIXED: u8 = 5;
pub const POLL_ADD: u8 = 6;
pub const POLL_REMOVE: u8 = 7;
pub const SYNC_FILE_RANGE: u8 = 8;
pub const SENDMSG: u8 = 9;
pub const RECVMSG: u8 = 10;
pub const TIMEOUT: u8 = 11;
pub const TIMEOUT_REMOVE: u8 = 12;
pub const ACCEPT: u8 = 13;
pub const ASYNC_CANCEL: u8 = 14;
pub const LINK_TIMEOUT: u8 = 15;
pub const CONNECT: u8 = 16;
pub const FALLOCATE: u8 = 17;
pub const OPENAT: u8 = 18;
pub const CLOSE: u8 = 19;
pub const FILES_UPDATE: u8 = 20;
pub const STATX: u8 = 21;
pub const READ: u8 = 22;
pub const WRITE: u8 = 23;
pub const FADVISE: u8 = 24;
pub const MADVISE: u8 = 25;
pub const SEND: u8 = 26;
pub const RECV: u8 = 27;
pub const OPENAT2: u8 = 28;
pub const EPOLL_CTL: u8 = 29;
pub const SPLICE: u8 = 30;
pub const TEE: u8 = 33;
pub const SHUTDOWN: u8 = 34;
pub const RENAMEAT: u8 = 35;
pub const UNLINKAT: u8 = 36;
pub const MKDIRAT: u8 = 37;
pub const SYMLINKAT: u8 = 38;
pub const LINKAT: u8 = 39;
pub const SOCKET: u8 = 45;
pub const FTRUNCATE: u8 = 55;
pub const BIND: u8 = 56;
pub const LISTEN: u8 = 57;

pub const MSG_DONTWAIT: u32 = 0x40;
pub const MSG_WAITALL: u32 = 0x100;

/// What is served, in ascending order.
pub const SERVED: [u8; 42] = [
    NOP,
    READV,
    WRITEV,
    FSYNC,
    READ_FIXED,
    WRITE_FIXED,
    POLL_ADD,
    POLL_REMOVE,
    SYNC_FILE_RANGE,
    SENDMSG,
    RECVMSG,
    TIMEOUT,
    TIMEOUT_REMOVE,
    ACCEPT,
    ASYNC_CANCEL,
    LINK_TIMEOUT,
    CONNECT,
    FALLOCATE,
    OPENAT,
    CLOSE,
    FILES_UPDATE,
    STATX,
    READ,
    WRITE,
    FADVISE,
    MADVISE,
    SEND,
    RECV,
    OPENAT2,
    EPOLL_CTL,
    SPLICE,
    TEE,
    SHUTDOWN,
    RENAMEAT,
    UNLINKAT,
    MKDIRAT,
    SYMLINKAT,
    LINKAT,
    SOCKET,
    FTRUNCATE,
    BIND,
    LISTEN,
];

/// Is the operation one of those that are served?
pub fn is_served(opcode: u8) -> bool {
    SERVED.contains(&opcode)
}
