//! Things to wait for, and the calls that end the wait.

use crate::arena::{unique, unique_path, Arena, Grandchild, LOADED};
use crate::descriptors::new_pipe;
use crate::raw::{make, must};

const AF_UNIX: u64 = 1;
const SOCK_STREAM: u64 = 1;
const SOCK_NONBLOCK: u64 = 0o4000;
const SOL_SOCKET: u64 = 1;
const MSG_DONTWAIT: u64 = 0x40;
const F_SETFL: u64 = 4;
const O_NONBLOCK: u64 = 0o4000;
/// A long time, as seconds and something.
pub const LONG: [u64; 2] = [100_000, 0];

/// A pair of connected sockets.
pub fn sockets(arena: &mut Arena) -> (u64, u64) {
    let pair = arena.scratch(&[0; 8]) as *const [u32; 2];
    must("socketpair", [AF_UNIX, SOCK_STREAM, 0, pair as u64]);
    // SAFETY: the kernel has just written both.
    let [one, two] = unsafe { pair.read_volatile() }.map(u64::from);
    arena.finally(move || [one, two].map(|fd| must("close", [fd])));
    (one, two)
}

/// Gives a socket a time-out: SO_RCVTIMEO or SO_SNDTIMEO.
pub fn set_timeout(arena: &mut Arena, socket: u64, option: u64) {
    let timeout = arena.words(&LONG);
    must("setsockopt", [socket, SOL_SOCKET, option, timeout, 16]);
}

/// A socket with a time-out, whose peer is silent.
pub fn timed(arena: &mut Arena, option: u64) -> u64 {
    let (socket, _) = sockets(arena);
    set_timeout(arena, socket, option);
    socket
}

/// A socket whose peer sends a byte at each alarm.
pub fn fed_socket(arena: &mut Arena) -> u64 {
    let (one, two) = sockets(arena);
    let byte = arena.text("x");
    arena.feed("write", &[two, byte, 1]);
    one
}

/// The end to read of a pipe that gets a byte at each alarm.
pub fn fed_pipe(arena: &mut Arena) -> u64 {
    let (reader, writer) = new_pipe(arena);
    let byte = arena.text("x");
    arena.feed("write", &[writer, byte, 1]);
    reader
}

/// The end to write of a full pipe that is emptied at each alarm. Emptying must not wait: two alarms may come before the writer's
/// turn.
pub fn full_pipe(arena: &mut Arena) -> u64 {
    let (reader, writer) = new_pipe(arena);
    let page = arena.slot(0);
    must("fcntl", [writer, 1031, 4096]);
    must("write", [writer, page, 4096]);
    must("fcntl", [reader, F_SETFL, O_NONBLOCK]);
    let to = arena.slot(1);
    arena.feed("read", &[reader, to, 4096]);
    writer
}

/// A buffer, and the array that names it.
pub fn vector(arena: &mut Arena) -> u64 {
    let at = arena.slot(2);
    arena.words(&[at, 100])
}

/// A header with a buffer.
pub fn header(arena: &mut Arena) -> u64 {
    let vector = vector(arena);
    arena.words(&[0, 0, vector, 1, 0, 0, 0, 0])
}

/// A FIFO that nobody has open; the other end is opened at each alarm.
pub fn fifo(arena: &mut Arena) -> u64 {
    let path = unique_path("fifo");
    let at = arena.text(&path);
    must("mknod", [at, 0o010_600, 0]);
    arena.finally(move || std::fs::remove_file(path).expect("our own file"));
    arena.feed("open", &[at, 0o4002]);
    at
}

/// A Unix socket with a full queue of connections, and one that wants to connect: its descriptor, address and length.
pub fn busy_listener(arena: &mut Arena) -> [u64; 3] {
    let name = format!("\0{}", unique("busy"));
    let address = [&(AF_UNIX as u16).to_ne_bytes()[..], name.as_bytes()].concat();
    let (at, len) = (arena.input(&address), address.len() as u64);
    let fds = [SOCK_NONBLOCK, 0, 0].map(|flags| must("socket", [AF_UNIX, SOCK_STREAM | flags, 0]));
    let [listener, first, second] = fds;
    must("bind", [listener, at, len]);
    must("listen", [listener, 0]);
    must("connect", [first, at, len]);
    arena.finally(move || fds.map(|fd| must("close", [fd])));
    arena.feed("accept", &[listener, 0, 0]);
    [second, at, len]
}

/// A listening Unix socket that a client connects to at each alarm.
pub fn listener(arena: &mut Arena) -> u64 {
    let name = format!("\0{}", unique("accept"));
    let address = [&(AF_UNIX as u16).to_ne_bytes()[..], name.as_bytes()].concat();
    let (at, len) = (arena.input(&address), address.len() as u64);
    let fds = [0, SOCK_NONBLOCK].map(|flags| must("socket", [AF_UNIX, SOCK_STREAM | flags, 0]));
    must("bind", [fds[0], at, len]);
    must("listen", [fds[0], 5]);
    arena.finally(move || fds.map(|fd| must("close", [fd])));
    arena.feed("connect", &[fds[1], at, len]);
    fds[0]
}

/// Two descriptors of the same file, opened separately; the first has the lock, and lets it go at the alarm.
pub fn locked(arena: &mut Arena) -> (u64, u64) {
    let path = unique_path("lock");
    std::fs::write(&path, "").expect("a directory for tests");
    let at = arena.text(&path);
    let fds = [(); 2].map(|()| must("open", [at, 2]));
    std::fs::remove_file(path).ok();
    arena.finally(move || fds.map(|fd| must("close", [fd])));
    (fds[0], fds[1])
}

pub fn epoll(arena: &mut Arena) -> u64 {
    let epoll = must("epoll_create1", [0]);
    arena.finally(move || must("close", [epoll]));
    epoll
}

/// A System V message queue or a set of one semaphore, removed at the end.
pub fn ipc(arena: &mut Arena, get: &str, args: [u64; 3], control: &'static str) -> u64 {
    let id = must(get, args);
    // All zero is IPC_RMID.
    arena.finally(move || must(control, [id, 0, 0, 0]));
    id
}

/// A message queue without a name for messages of 8 bytes, with room for one.
pub fn queue(arena: &mut Arena) -> u64 {
    let name = arena.text(&unique("queue"));
    let attributes = arena.words(&[0, 1, 8, 0, 0, 0, 0, 0]);
    let fd = must("mq_open", [name, 0o302, 0o600, attributes]);
    must("mq_unlink", [name]);
    arena.finally(move || must("close", [fd]));
    fd
}

/// A word that is 7 until the alarm makes it 8: whoever waits for 7 again is told EAGAIN.
pub fn waited_word(arena: &mut Arena) -> u64 {
    const WAKE_OP: u64 = 5;
    const SET_8: u64 = 8 << 12;
    let word = arena.input(&7_u32.to_ne_bytes());
    arena.feed("futex", &[word, WAKE_OP, 1, 1, word, SET_8]);
    word
}

/// A socket whose peer does not read, full; emptied at each alarm. `option`: a time-out, or 0.
pub fn full_socket(arena: &mut Arena, option: u64) -> u64 {
    let (one, two) = sockets(arena);
    let page = arena.slot(0);
    while make("sendto", [one, page, 4096, MSG_DONTWAIT, 0, 0]) > 0 {}
    while make("sendto", [one, page, 1, MSG_DONTWAIT, 0, 0]) > 0 {}
    if option != 0 {
        set_timeout(arena, one, option);
    }
    let to = arena.slot(1);
    arena.feed("recvfrom", &[two, to, 16 << 10, MSG_DONTWAIT, 0, 0]);
    one
}

/// A grandchild that is killed at each alarm.
pub fn stays(arena: &mut Arena) {
    arena.grandchild = Grandchild::Stays;
    arena.loaded = arena.scratch(&[0; 8]);
    arena.feed("kill", &[LOADED, 9]);
}
