//! Kernel objects that are no descriptors, or whose state a descriptor does not show.

use crate::Amount::Whole;
use crate::Interrupted::{Eintr, Restart};
use crate::Len::{Bytes, BytesPlus, Fixed, Items, Special};
use crate::RingOp::EpollCtl;
use crate::Unit::Timespec;

const SEGMENT: &str =
    "System V shared memory: attached again; its content is memory like other, unless somebody else has it attached";
const SEMAPHORE: &str =
    "System V semaphores: the set stays, and tells whether it was changed; undo lists (SEM_UNDO) are \
    shared with the anchor";
const MESSAGES: &str =
    "System V messages: the queue stays, and tells what was sent; what is taken lands in the session";
const KEPT: &str = "belongs to the process; the engine keeps it, and has the next process make it anew";
const AIO: &str =
    "the context dies with the address space and is made again at its place, with the completions not taken";
const RING: &str =
    "the kernel's requests in flight could not be restored, and write memory behind the page tables: the engine \
    serves rings itself, making each entry as the call that it stands for";
const QUEUE: &str = "the queue is kept by its descriptor, and tells what was sent; what is taken lands in the session";
const WATCH: &str = "kept by the anchor's descriptor";
const KEYS: &str = "keys and keyrings of the process or session are not restored";
const RULESET: &str = "kept by the anchor's descriptor; rules already added are not taken back";

rows! {
    29 shmget Object .note(SEGMENT);
    30 shmat Object .note(SEGMENT);
    31 shmctl Object .decided_by(1) .out(2, Special) .note(SEGMENT);
    67 shmdt Object .note(SEGMENT);
    64 semget Object .note(SEMAPHORE);
    65 semop Object .waits(Eintr) .note(SEMAPHORE);
    66 semctl Object .decided_by(2) .out(3, Special) .note(SEMAPHORE);
    220 semtimedop Object .waits(Eintr) .timeout(3, Timespec) .note(SEMAPHORE);
    68 msgget Object .note(MESSAGES);
    69 msgsnd Object .waits(Eintr) .note(MESSAGES);
    70 msgrcv Object .waits(Eintr) .out(1, BytesPlus(Whole(2), 8)) .note(MESSAGES);
    71 msgctl Object .decided_by(1) .out(2, Special) .note(MESSAGES);
    206 io_setup Object .out(1, Fixed(8)) .note(AIO);
    207 io_destroy Object .note(AIO);
    208 io_getevents Object .waits(Eintr) .timeout(4, Timespec) .out(3, Items(Whole(2), 32)) .note(AIO);
    209 io_submit Object .out(2, Special)
        .note("waited for until all is done; the kernel writes aio_key (bytes 8..12) of each struct iocb in \
            the array, and the buffers later, behind the page tables");
    210 io_cancel Object .out(2, Fixed(32)) .note(AIO);
    333 io_pgetevents Object .waits(Eintr) .timeout(4, Timespec) .out(3, Items(Whole(2), 32)) .note(AIO);
    425 io_uring_setup Object .out(1, Fixed(120)) .note(RING);
    426 io_uring_enter Object .fd(0) .waits(Eintr) .out(4, Special) .note(RING);
    427 io_uring_register Object .fd(0) .decided_by(1) .out(2, Special) .note(RING);
    240 mq_open Object .decided_by(1)
        .note("a descriptor; O_CREAT makes a name. The queue is kept, messages are not undone");
    241 mq_unlink Object .note("a second one answers ENOENT; the name is not brought back");
    242 mq_timedsend Object .fd(0) .waits(Restart) .note(QUEUE);
    243 mq_timedreceive Object .fd(0) .waits(Restart) .out(1, Bytes(Whole(2))) .out(3, Fixed(4)) .note(QUEUE);
    244 mq_notify Object .fd(0) .note("the registration belongs to the process, and stays as long as the anchor has the queue, which tells of it");
    245 mq_getsetattr Object .fd(0) .decided_by(1) .out(2, Fixed(64))
        .note("only O_NONBLOCK can change; reading is Pure");
    248 add_key Object .note(KEYS);
    249 request_key Object .waits(Restart) .note(KEYS);
    250 keyctl Object .waits(Restart) .decided_by(0) .out(2, Special) .note(KEYS);
    233 epoll_ctl Object .fd(0) .fd(2) .ring(EpollCtl)
        .note("kept by the anchor's descriptor; a second ADD answers EEXIST, a second DEL ENOENT: the ring, or the \
            list of registrations in /proc/self/fdinfo, tells; can be replayed");
    254 inotify_add_watch Object .fd(0) .note(WATCH);
    255 inotify_rm_watch Object .fd(0) .note(WATCH);
    301 fanotify_mark Object .fd(0) .fd(3) .note(WATCH);
    298 perf_event_open Object .process(1) .out(0, Fixed(8))
        .note("counts belong to the dead process and start anew; the attribute's size is written when it is too large");
    321 bpf Object .decided_by(0) .out(1, Special)
        .note("maps and programs are kept by their descriptors, changes are not undone");
    323 userfaultfd Object
        .note("belongs to an address space and dies with it: made anew, with ranges and protection; where that cannot be, protection ends");
    444 landlock_create_ruleset Object .note(RULESET);
    445 landlock_add_rule Object .fd(0) .note(RULESET);
    101 ptrace Object .waits(Restart) .decided_by(0) .out(3, Special)
        .note("the tracer's death detaches or kills its tracees; what was done to them is not undone");
    222 timer_create Object .out(2, Fixed(4)) .note(KEPT);
    223 timer_settime Object .out(3, Fixed(32)) .note(KEPT);
    226 timer_delete Object .note(KEPT);
    37 alarm Object .note(KEPT);
    38 setitimer Object .out(2, Fixed(32)) .note(KEPT);
}
