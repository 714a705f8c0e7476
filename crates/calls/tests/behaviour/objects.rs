//! Queues and contexts.

use crate::arena::{bytes, unique, Arena, LOADED};
use crate::probe::probes;
use crate::raw::must;

const IOCB_CMD_POLL: u64 = 5;
const POLLOUT: u64 = 4;
const O_RDWR_CREAT_EXCL: u64 = 0o302;
const IPC_PRIVATE: u64 = 0;
const IPC_RMID: u64 = 0;

/// Lets the child make a context for asynchronous input and output, with a request that is done at once.
fn context(arena: &mut Arena) {
    let event = must("eventfd2", [0, 0]);
    arena.finally(move || must("close", [event]));
    arena.loaded = arena.scratch(&[0; 8]);
    let request = [0, 0, IOCB_CMD_POLL | event << 32, POLLOUT, 0, 0, 0, 0];
    let request = arena.scratch(&bytes(&request));
    let list = arena.scratch(&bytes(&[request]));
    arena.first("io_setup", &[4, arena.loaded]);
    arena.first("io_submit", &[LOADED, 1, list]);
}

/// A message queue without a name, with a message in it.
fn queue(arena: &mut Arena, test: &str) -> u64 {
    let name = arena.text(&unique(test));
    let attributes = arena.words(&[0, 4, 64, 0, 0, 0, 0, 0]);
    let fd = must("mq_open", [name, O_RDWR_CREAT_EXCL, 0o600, attributes]);
    must("mq_unlink", [name]);
    must("mq_timedsend", [fd, name, 7, 3, 0]);
    arena.finally(move || must("close", [fd]));
    fd
}

/// A System V message queue with a message of type 9 in it.
fn messages(arena: &mut Arena) -> u64 {
    let id = must("msgget", [IPC_PRIVATE, 0o600]);
    arena.finally(move || must("msgctl", [id, IPC_RMID, 0]));
    let message = arena.words(&[9, 0x1111_2222]);
    must("msgsnd", [id, message, 8, 0]);
    id
}

probes! {
    io_setup Success arena => vec![(0, 4), (1, arena.put(1, &[0; 8]))];
    io_getevents Success arena => {
        context(arena);
        vec![(0, LOADED), (1, 1), (2, 4), (4, 0)]
    };
    io_pgetevents Success arena => {
        context(arena);
        vec![(0, LOADED), (1, 1), (2, 4), (4, 0), (5, 0)]
    };
    io_cancel Answer arena => {
        context(arena);
        vec![(0, LOADED), (1, arena.input(&[0; 64]))]
    };
    io_uring_setup Support arena => vec![(0, 4), (1, arena.put(1, &[0; 120]))];
    mq_timedreceive Success arena => {
        let fd = queue(arena, "receive");
        vec![(0, fd), (2, 100), (4, 0)]
    };
    mq_getsetattr Success arena => vec![(0, queue(arena, "attributes")), (1, 0)];
    msgrcv Success arena => {
        let id = messages(arena);
        vec![(0, id), (2, 100), (3, 0), (4, 0)]
    };
}
