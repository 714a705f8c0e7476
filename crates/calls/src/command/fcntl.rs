//! fcntl: descriptors, status flags, locks, pipes, seals.

use crate::Interrupted::Restart;
use crate::Len::Fixed;

commands! {
    72 fcntl, descriptors 1, numbers from crate::checks::numbers;
    0 F_DUPFD Open;
    1 F_GETFD Pure;
    2 F_SETFD Redo;
    3 F_GETFL Pure;
    4 F_SETFL Redo;
    5 F_GETLK Pure .out(2, Fixed(32));
    6 F_SETLK Redo .note("the lock belongs to the descriptor table that the anchor shares: the same lock again");
    7 F_SETLKW Redo .waits(Restart) .note("as F_SETLK");
    8 F_SETOWN Redo;
    9 F_GETOWN Pure;
    10 F_SETSIG Redo;
    11 F_GETSIG Pure;
    15 F_SETOWN_EX Redo;
    16 F_GETOWN_EX Pure .out(2, Fixed(8));
    17 F_GETOWNER_UIDS Pure .out(2, Fixed(8));
    36 F_OFD_GETLK Pure .out(2, Fixed(32));
    37 F_OFD_SETLK Redo .note("the lock belongs to the open file that the anchor holds: the same lock again");
    38 F_OFD_SETLKW Redo .waits(Restart) .note("as F_OFD_SETLK");
    1024 F_SETLEASE Redo;
    1025 F_GETLEASE Pure;
    1026 F_NOTIFY Redo;
    1027 F_DUPFD_QUERY Pure;
    1028 F_CREATED_QUERY Pure;
    1030 F_DUPFD_CLOEXEC Open;
    1031 F_SETPIPE_SZ Redo;
    1032 F_GETPIPE_SZ Pure;
    1033 F_ADD_SEALS Redo .note("after F_SEAL_SEAL a second one answers EPERM: done");
    1034 F_GET_SEALS Pure;
    1035 F_GET_RW_HINT Pure .out(2, Fixed(8));
    1036 F_SET_RW_HINT Redo;
    1037 F_GET_FILE_RW_HINT Pure .out(2, Fixed(8));
    1038 F_SET_FILE_RW_HINT Redo;
}
