//! The io_uring operations that do the same as a system call.

macro_rules! ring_ops {
    ($($name:ident $kernel:ident = $value:literal;)*) => {
        /// An io_uring operation of Linux 6.18, with its opcode. Whether the running kernel has it is for
        /// IORING_REGISTER_PROBE to say.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum RingOp { $($name = $value,)* }

        impl RingOp {
            /// All that the table uses.
            pub const ALL: &'static [RingOp] = &[$(RingOp::$name,)*];

            /// Its name in `linux/io_uring.h`.
            pub const fn name(self) -> &'static str {
                match self { $(RingOp::$name => stringify!($kernel),)* }
            }
        }

        #[cfg(test)]
        mod tests {
            use linux_raw_sys::io_uring::io_uring_op::*;

            #[test]
            fn opcodes_are_the_kernels() {
                $(assert_eq!(super::RingOp::$name as u32, $kernel as u32, stringify!($kernel));)*
            }
        }
    };
}

ring_ops! {
    Readv IORING_OP_READV = 1;
    Writev IORING_OP_WRITEV = 2;
    Fsync IORING_OP_FSYNC = 3;
    PollAdd IORING_OP_POLL_ADD = 6;
    SyncFileRange IORING_OP_SYNC_FILE_RANGE = 8;
    Sendmsg IORING_OP_SENDMSG = 9;
    Recvmsg IORING_OP_RECVMSG = 10;
    Timeout IORING_OP_TIMEOUT = 11;
    Accept IORING_OP_ACCEPT = 13;
    Connect IORING_OP_CONNECT = 16;
    Fallocate IORING_OP_FALLOCATE = 17;
    Openat IORING_OP_OPENAT = 18;
    Close IORING_OP_CLOSE = 19;
    Statx IORING_OP_STATX = 21;
    Read IORING_OP_READ = 22;
    Write IORING_OP_WRITE = 23;
    Fadvise IORING_OP_FADVISE = 24;
    Madvise IORING_OP_MADVISE = 25;
    Send IORING_OP_SEND = 26;
    Recv IORING_OP_RECV = 27;
    Openat2 IORING_OP_OPENAT2 = 28;
    EpollCtl IORING_OP_EPOLL_CTL = 29;
    Splice IORING_OP_SPLICE = 30;
    Tee IORING_OP_TEE = 33;
    Shutdown IORING_OP_SHUTDOWN = 34;
    Renameat IORING_OP_RENAMEAT = 35;
    Unlinkat IORING_OP_UNLINKAT = 36;
    Mkdirat IORING_OP_MKDIRAT = 37;
    Symlinkat IORING_OP_SYMLINKAT = 38;
    Linkat IORING_OP_LINKAT = 39;
    Fsetxattr IORING_OP_FSETXATTR = 41;
    Setxattr IORING_OP_SETXATTR = 42;
    Fgetxattr IORING_OP_FGETXATTR = 43;
    Getxattr IORING_OP_GETXATTR = 44;
    Socket IORING_OP_SOCKET = 45;
    UringCmd IORING_OP_URING_CMD = 46;
    Waitid IORING_OP_WAITID = 50;
    FutexWait IORING_OP_FUTEX_WAIT = 51;
    FutexWake IORING_OP_FUTEX_WAKE = 52;
    FutexWaitv IORING_OP_FUTEX_WAITV = 53;
    Ftruncate IORING_OP_FTRUNCATE = 55;
    Bind IORING_OP_BIND = 56;
    Listen IORING_OP_LISTEN = 57;
    EpollWait IORING_OP_EPOLL_WAIT = 59;
    Pipe IORING_OP_PIPE = 62;
}
