//! The thread that waits for clients: new ones, and those from whom something has come or who can take more.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rustix::event::epoll::{self, EventData, EventFlags};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::front::{Front, LISTENER, POLLER};

/// Events that are looked at together, and connections that are taken together.
const TOGETHER: usize = 64;

pub fn run(front: &Front) -> Result<(), Failure> {
    let poll = |error: rustix::io::Errno| Failure::Poll(error.into());
    epoll::add(&front.epoll, &front.listener, EventData::new_u64(LISTENER), EventFlags::IN).map_err(poll)?;
    let mut events = Vec::with_capacity(TOGETHER);
    let mut last = LISTENER;
    loop {
        events.clear();
        match epoll::wait(&front.epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(poll(error)),
        }
        let told: Vec<u64> = events.iter().map(|event| event.data.u64()).filter(|token| *token != LISTENER).collect();
        let fresh = match told.len() == events.len() {
            true => Vec::new(),
            false => accept(front, &mut last)?,
        };
        if !told.is_empty() || !fresh.is_empty() {
            front.ready(POLLER, fresh, &told)?;
        }
    }
}

/// New connections, as many as are allowed.
fn accept(front: &Front, last: &mut u64) -> Result<Vec<Connection>, Failure> {
    let mut fresh = Vec::new();
    while fresh.len() < TOGETHER {
        if front.open.load(Ordering::SeqCst) >= front.most {
            pause(front)?;
            // The last one may have ended just before.
            front.resume()?;
            break;
        }
        match front.listener.accept() {
            Ok((socket, peer)) => {
                // A client that is gone already is found out by whoever serves it.
                let _ = socket.set_nodelay(true);
                if socket.set_nonblocking(true).is_err() {
                    continue;
                }
                *last += 1;
                fresh.push(Connection::new(socket, peer, *last, Instant::now() + front.timeout, &front.open));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
            // No descriptors, no memory: others may have to end first.
            Err(_) => {
                pause(front)?;
                break;
            }
        }
    }
    Ok(fresh)
}

/// Takes no connections until one has ended, or the clock ticks.
fn pause(front: &Front) -> Result<(), Failure> {
    let data = EventData::new_u64(LISTENER);
    epoll::modify(&front.epoll, &front.listener, data, EventFlags::empty())
        .map_err(|error| Failure::Poll(error.into()))?;
    front.paused.store(true, Ordering::SeqCst);
    Ok(())
}
