//! Bytes in and out of descriptors, and what makes files longer, shorter or durable.

use crate::Amount::{Low, Whole};
use crate::Interrupted::{Eintr, Restart, RestartUnlessTimeout};
use crate::Len::{Bytes, Fixed, Iovec, Special};
use crate::RingOp::{Fadvise, Fallocate, Fsync, Ftruncate, Read, Readv, Splice, SyncFileRange, Tee, Write, Writev};

const DURABLE: &str = "what is durable stays durable";
const SIZE: &str =
    "the same size set again; what was cut off is gone already (a before-image brings it back on a rollback)";
const SPLICE: &str = "takes from one descriptor what it gives to the other: an input too";

rows! {
    0 read Input .fd(0) .waits(RestartUnlessTimeout) .ring(Read) .out(1, Bytes(Whole(2)));
    1 write Output .fd(0) .waits(RestartUnlessTimeout) .ring(Write);
    8 lseek Offset .fd(0);
    16 ioctl Redo .fd(0) .waits(Restart) .decided_by(1) .out(2, Special)
        .note("by its request: setting the same terminal modes, window size or flags again; FIONREAD and the TCGET, \
            TIOCG requests are Pure; TIOCSTI, TCFLSH and driver requests are none of these");
    17 pread64 Input .fd(0) .waits(Restart) .ring(Read) .out(1, Bytes(Whole(2)))
        .note("moves no offset: Pure on a regular file");
    18 pwrite64 Output .fd(0) .waits(Restart) .ring(Write)
        .note("idempotent on a regular file without O_APPEND");
    19 readv Input .fd(0) .waits(RestartUnlessTimeout) .ring(Readv) .out(1, Iovec(Whole(2)));
    20 writev Output .fd(0) .waits(RestartUnlessTimeout) .ring(Writev);
    40 sendfile Output .fd(0) .fd(1) .waits(RestartUnlessTimeout) .out(2, Fixed(8)) .note(SPLICE);
    73 flock Redo .fd(0) .waits(Restart)
        .note("the lock belongs to the open file that the anchor holds: the same lock again");
    74 fsync Redo .fd(0) .ring(Fsync) .note(DURABLE);
    75 fdatasync Redo .fd(0) .ring(Fsync) .note(DURABLE);
    76 truncate Redo .note(SIZE);
    77 ftruncate Redo .fd(0) .ring(Ftruncate) .note(SIZE);
    78 getdents Offset .fd(0) .out(1, Bytes(Low(2)));
    162 sync Redo .note(DURABLE);
    187 readahead Pure .fd(0);
    217 getdents64 Offset .fd(0) .out(1, Bytes(Low(2)));
    221 fadvise64 Pure .fd(0) .ring(Fadvise);
    275 splice Output .fd(0) .fd(2) .waits(RestartUnlessTimeout) .ring(Splice) .out(1, Fixed(8)) .out(3, Fixed(8))
        .note(SPLICE);
    276 tee Output .fd(0) .fd(1) .waits(Restart) .ring(Tee) .note("takes nothing from the source");
    277 sync_file_range Redo .fd(0) .ring(SyncFileRange) .note(DURABLE);
    278 vmsplice Output .fd(0) .waits(Restart) .out(1, Iovec(Whole(2)))
        .note("at the read end of a pipe an input that fills the buffers; at the write end only read, and lent to the \
            pipe");
    285 fallocate Redo .fd(0) .interrupted(Eintr) .decided_by(1) .ring(Fallocate)
        .note("allocating, punching and zeroing the same range again changes nothing; FALLOC_FL_COLLAPSE_RANGE and \
            INSERT_RANGE would shift twice: the ring, or the file's size, tells");
    295 preadv Input .fd(0) .waits(Restart) .ring(Readv) .out(1, Iovec(Whole(2)))
        .note("moves no offset: Pure on a regular file");
    296 pwritev Output .fd(0) .waits(Restart) .ring(Writev) .note("idempotent on a regular file without O_APPEND");
    306 syncfs Redo .fd(0) .note(DURABLE);
    326 copy_file_range Output .fd(0) .fd(2) .interrupted(Restart) .out(1, Fixed(8)) .out(3, Fixed(8)) .note(SPLICE);
    327 preadv2 Input .fd(0) .waits(RestartUnlessTimeout) .ring(Readv) .out(1, Iovec(Whole(2)))
        .note("with offset -1 as readv, else as preadv");
    328 pwritev2 Output .fd(0) .waits(RestartUnlessTimeout) .ring(Writev)
        .note("with offset -1 as writev, else as pwritev");
    451 cachestat Pure .fd(0) .out(2, Fixed(40));
}
