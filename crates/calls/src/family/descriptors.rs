//! Making, copying, changing and closing descriptors.

use crate::Interrupted::Restart;
use crate::Len::{Fixed, Special};
use crate::RingOp::{Close, Openat, Openat2, Pipe};
use crate::{Place, Witness};

const OPEN: &str =
    "O_CREAT makes a name (Once: the name exists after), O_TRUNC destroys contents (a before-image, or Redo); opening \
        a FIFO waits for the other end";

rows! {
    2 open Open .waits(Restart) .decided_by(1) .ring(Openat) .note(OPEN);
    3 close Close .fd(0) .ring(Close)
        .note("the last descriptor of a file also drops POSIX locks, sends FIN, or deletes an unlinked file");
    22 pipe Open .ring(Pipe) .out(0, Fixed(8));
    32 dup Open .fd(0);
    33 dup2 Open .fd(0) .fd(1) .note("closes the target first");
    72 fcntl Redo .fd(0) .waits(Restart) .decided_by(1) .out(2, Special)
        .note("F_SETFL, F_SETFD, F_SETOWN, F_SETSIG, F_SETPIPE_SZ, F_SETLK set the same state again; F_DUPFD is Open, \
            the F_GET commands are Pure and write up to 32 bytes; F_SETLKW and F_OFD_SETLKW wait; F_ADD_SEALS answers \
            EPERM the second time only after F_SEAL_SEAL: F_GET_SEALS tells; F_SETLEASE and F_NOTIFY set the same again");
    85 creat Once .waits(Restart) .ring(Openat) .witness(Witness::Created(Place::path(0)))
        .note("OPENAT with O_CREAT|O_WRONLY|O_TRUNC; else the name exists after, and a second truncation finds an \
            empty file");
    257 openat Open .fd(0) .waits(Restart) .decided_by(2) .ring(Openat) .note(OPEN);
    284 eventfd Open;
    290 eventfd2 Open;
    213 epoll_create Open;
    291 epoll_create1 Open;
    292 dup3 Open .fd(0) .fd(1) .note("closes the target first");
    293 pipe2 Open .ring(Pipe) .out(0, Fixed(8));
    253 inotify_init Open;
    294 inotify_init1 Open;
    300 fanotify_init Open;
    304 open_by_handle_at Open .fd(0) .waits(Restart) .decided_by(2)
        .note("O_TRUNC destroys contents; there is no O_CREAT here");
    319 memfd_create Open;
    436 close_range Close .decided_by(2)
        .note("CLOSE_RANGE_UNSHARE takes a descriptor table of its own: the anchor then no longer shares it; \
            CLOSE_RANGE_CLOEXEC only sets flags; the engine's own descriptors must be left out of the range");
    437 openat2 Open .fd(0) .waits(Restart) .decided_by(2) .ring(Openat2)
        .note("the flags are the first word of the struct open_how; else as openat");
    447 memfd_secret Open .note("its pages can be read by nobody but the program: no copy from outside");
}
