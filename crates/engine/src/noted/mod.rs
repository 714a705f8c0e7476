//! Exactly once without io_uring: system calls in which the kernel itself leaves a note that outlives the process.
//!
//! SIGKILL lets a system call finish but never returns to user code. What the call writes or moves in the same stroke
//! is there for a successor: a word in the session, bytes in a pipe that the anchor holds, a descriptor in the table
//! that the anchor shares, a name. Each file here is one such mechanism; they stand in for operations of the ring and
//! follow its rules: committed first, identified by the commit's number, looked for before anything else is done by a
//! restored process. The note stays until the next commit's operation overwrites it, so a successor that dies too
//! changes nothing.
//!
//! | calls | on | what tells |
//! |---|---|---|
//! | read, readv | pipes | splice into the session moves an offset there |
//! | | pipes of packets, or under a small limit of a file's size | an event in a ring of completions |
//! | | terminals | the same; where there is none, splice into the transfer pipe, and from there into the session, as above |
//! | | eventfd, timerfd, signalfd, inotify | the records themselves, over a pattern that none has |
//! | read, readv, recv, recvfrom, recvmsg, recvmmsg | sockets | recvmmsg stores `msg_len`; SO_ERROR stores the error it takes |
//! | write, writev, sendfile | pipes, terminals | splice from the transfer pipe: what is left there |
//! | | pipes that nobody reads from, pipes of packets, other drivers | an event in a ring of completions |
//! | write | eventfd | /proc shows the count |
//! | write, writev, send, sendto, sendmsg, sendmmsg, sendfile | sockets | sendmmsg stores `msg_len` |
//! | accept, accept4, open with O_CREAT or O_TRUNC | | the descriptor; if all that held it has died, an empty file that was not there before |
//! | msgrcv, mq_receive | | the message itself, over a mark that none leaves |
//! | mq_send, semop, msgsnd of what ends with a zero | | a page that had no memory before the kernel read there |
//! | msgsnd | | the queue before and after |
//! | shmget, semget, msgget | what nobody has yet | a permission that the engine takes back |
//! | mkdir, mknod, symlink, link, unlink, rmdir, rename, removexattr, bind, connect, shutdown | | the state before and after |
//! | setxattr with XATTR_CREATE, F_ADD_SEALS, setsockopt for groups and the like | | the state before and after |
//!
//! What keeps the window of one call: a kill inside the call itself loses or repeats it, or, for an input, what it took.
//!
//! - Reads from any other kind of anonymous descriptor, writes to devices whose drivers know neither splice nor iterators, and a write to
//!   an eventfd that somebody else reads or writes while the program is dead.
//! - Where the kernel gives no context for completions (`fs.aio-max-nr`, or none is built in): pipes in packet mode (O_DIRECT), pipe and
//!   terminal input under a file size limit of less than 4 MiB, a write to a pipe whose reader was found not to read if it wakes up within
//!   that very call, and the end of file that a terminal's user typed, if more was typed after it at that moment.
//! - Errors: one that is reported only once, and arises within the very call, may be lost; a send that meets one that
//!   was there before may answer EPIPE in its place.
//! - A directory, node or empty file that somebody else makes, or a name that somebody else removes, while the program is dead, where
//!   the program was about to do just the same: taken for its own deed.
//! - mkdirat and its kind are as good as their names: only removexattrat, setsid, and what has no operation of the ring
//!   either (splice, tee, vmsplice, copy_file_range, preadv2 and pwritev2 on streams, calls on kernel
//!   objects) are left to a commit before and after.

mod asked;
pub mod completions;
mod counter;
mod descriptor;
mod entered;
pub mod names;
mod note;
pub mod object;
mod pipe;
pub mod queue;
pub mod records;
mod socket;
mod terminal;
pub mod transfer;
pub mod witness;

pub use socket::is_stream;

use crate::dispatch::{issue, Call};
use crate::ring::{op, Entry};
use crate::state::Engine;
use crate::sys::{err, nr};
use core::sync::atomic::Ordering::Relaxed;
use note::{how, note};
use outlast_image::descriptor::descriptor_kind as kind;

/// Makes the system call with the effect of `entry`, so that a successor can tell whether it happened.
pub fn run(e: &mut Engine, id: u64, entry: &Entry) -> i64 {
    let fd = entry.fd;
    let r = match (entry.opcode, e.fds.kind(fd)) {
        (op::READ, kind::PIPE) => pipe::read(e, id, entry),
        (op::READ, kind::TERMINAL) => terminal::read(e, id, entry),
        (op::READ, kind::SOCKET) => socket::read(id, entry),
        (op::READ, _) => records::read(e, id, entry),
        (op::WRITE | op::WRITEV, kind::PIPE) => pipe::write(e, id, entry),
        (op::WRITE | op::WRITEV, kind::SOCKET) => socket::write(id, entry),
        (op::WRITE | op::WRITEV, kind::ANONYMOUS) => counter::write(id, entry).unwrap_or_else(|| plain(e, id, entry)),
        (op::WRITE | op::WRITEV, _) => terminal::write(e, id, entry),
        (op::SENDMSG, _) => socket::send(id, fd, entry.op_flags as u64),
        (op::RECVMSG, _) => socket::receive(id, fd, entry.op_flags as u64),
        (op::ACCEPT, _) => descriptor::accept(e, id, entry),
        _ => err::ENOSYS,
    };
    note().close(r)
}

/// The call itself. If the kernel has no way to tell of it, nothing tells but the result stored after it.
fn plain(e: &Engine, id: u64, entry: &Entry) -> i64 {
    if let Some(r) = completions::run(e, id, entry, entry.fd) {
        return r;
    }
    note().begin(how::PLAIN, entry.fd);
    note().arm(id);
    let number = match entry.opcode {
        op::READ => nr::READ,
        op::WRITEV => nr::WRITEV,
        _ => nr::WRITE,
    };
    issue(&Call { nr: number, args: [entry.fd as u64, entry.addr, entry.len as u64, 0, 0, 0] })
}

/// What was to be seen before call `id`, of which the session knows nothing: it is another one's.
pub fn recall(id: u64, fd: i32, words: &[u64; witness::WORDS]) {
    if note().of(id).is_none() {
        note().begin(how::WITNESS, fd);
        for (word, value) in note().words.iter().zip(words) {
            word.store(*value, Relaxed);
        }
        note().arm(id);
    }
}

/// What a dead predecessor did counts no more.
pub fn forget() {
    note().void();
}

/// What call `id` of a dead predecessor came to; `None`: it did not happen, or only a second look can tell. To be asked
/// before this process opens anything.
pub fn predecessor_result(e: &mut Engine, id: u64) -> Option<i64> {
    let (kind, returned) = note().of(id)?;
    let found = match (returned, kind) {
        (Some(r), _) => (!note::is_nothing(r)).then_some(r),
        (None, how::SPLICED) => transfer::moved(),
        (None, how::COLLECTED) => terminal::collected(e),
        (None, how::STAGED) => transfer::sent(e),
        (None, how::COUNTED) => pipe::filled(),
        (None, how::MESSAGE) => socket::length(),
        (None, how::SIZED) => socket::sized(),
        (None, how::SOCKET_ERROR) => socket::taken_error(),
        (None, how::RECORDS) => records::taken(),
        (None, how::COUNTER) => counter::added(),
        (None, how::DESCRIPTOR) => descriptor::made(),
        (None, how::QUEUE) => queue::taken(),
        (None, how::COMPLETED) => completions::completed(e, id),
        _ => None,
    };
    found.map(|r| note().close(r))
}
