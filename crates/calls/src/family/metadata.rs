//! What a file system knows about a file besides its contents and names.

use crate::Amount::{Low, Whole};
use crate::Len::{Bytes, Fixed, Items, Special};
use crate::RingOp::Statx;

const MODE: &str = "the same mode bits set again; only the change time moves";
const OWNER: &str = "the same owner set again; set-ID bits are cleared the same way; only the change time moves";
const TIMES: &str =
    "the same times set again; where the time is `now`, a slightly later one: invisible but for the delay";

rows! {
    4 stat Pure .out(1, Fixed(144));
    5 fstat Pure .fd(0) .out(1, Fixed(144));
    6 lstat Pure .out(1, Fixed(144));
    21 access Pure;
    90 chmod Redo .note(MODE);
    91 fchmod Redo .fd(0) .note(MODE);
    92 chown Redo .note(OWNER);
    93 fchown Redo .fd(0) .note(OWNER);
    94 lchown Redo .note(OWNER);
    132 utime Redo .note(TIMES);
    136 ustat Pure .out(1, Fixed(32));
    137 statfs Pure .out(1, Fixed(120));
    138 fstatfs Pure .fd(0) .out(1, Fixed(120));
    139 sysfs Pure .out(2, Special)
        .note("option 2 writes the name of a file system type, a C string, without any bound given");
    212 lookup_dcookie Pure .out(1, Bytes(Whole(2))) .note("gone since 6.8");
    235 utimes Redo .note(TIMES);
    260 fchownat Redo .fd(0) .note(OWNER);
    261 futimesat Redo .fd(0) .note(TIMES);
    262 newfstatat Pure .fd(0) .ring(Statx) .out(2, Fixed(144));
    268 fchmodat Redo .fd(0) .note(MODE);
    269 faccessat Pure .fd(0);
    280 utimensat Redo .fd(0) .note(TIMES);
    332 statx Pure .fd(0) .ring(Statx) .out(4, Fixed(256));
    439 faccessat2 Pure .fd(0);
    452 fchmodat2 Redo .fd(0) .note(MODE);
    457 statmount Pure .out(1, Bytes(Whole(2)));
    458 listmount Pure .out(1, Items(Whole(2), 8));
    468 file_getattr Pure .fd(0) .out(2, Bytes(Whole(3)));
    469 file_setattr Redo .fd(0) .note("the same flags, extent size and project set again");
    303 name_to_handle_at Pure .fd(0) .out(2, crate::Len::Handle) .out(3, Fixed(8))
        .note("the mount id takes 4 bytes, with AT_HANDLE_MNT_ID_UNIQUE 8");
    89 readlink Pure .out(1, Bytes(Low(2)));
    267 readlinkat Pure .fd(0) .out(2, Bytes(Low(3)));
}
