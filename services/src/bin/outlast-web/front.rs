//! What the front's threads share: connections under a lock of the lock component, and workers that are blocked and woken
//! through the scheduler.

use std::collections::{HashMap, VecDeque};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::event::epoll::{self, EventData, EventFlags};

use crate::connection::{Connection, Next};
use crate::failure::Failure;
use crate::guarded::Guarded;
use crate::log::Log;
use crate::stubs::{Event, Lock, Memory, Scheduler, Timer};

/// Threads as locks know them: workers follow.
pub const POLLER: u32 = 1;
pub const CLOCK: u32 = 2;
pub const MAIN: u32 = 3;
pub const WORKERS: u32 = 16;

/// The listening socket among the events.
pub const LISTENER: u64 = 0;

pub struct Front {
    pub locks: Lock,
    pub events: Event,
    pub memory: Memory,
    pub scheduler: Scheduler,
    pub timers: Timer,
    pub listener: TcpListener,
    pub epoll: OwnedFd,
    pub table: Guarded<Table>,
    pub log: Option<Guarded<Log>>,
    /// The workers, as the scheduler knows them.
    pub workers: Vec<u64>,
    pub open: Arc<AtomicUsize>,
    pub most: usize,
    /// New connections are not taken.
    pub paused: AtomicBool,
    pub timeout: Duration,
    /// When the files were loaded, which have not changed since.
    pub loaded: SystemTime,
}

#[derive(Default)]
pub struct Table {
    /// Those that wait for their client.
    parked: HashMap<u64, Box<Connection>>,
    /// Those that wait for a worker.
    ready: VecDeque<Box<Connection>>,
    /// Workers that wait for a connection.
    idle: Vec<usize>,
}

impl Table {
    /// Workers for as many as are ready.
    fn wanted(&mut self) -> Vec<usize> {
        let count = self.ready.len().min(self.idle.len());
        self.idle.split_off(self.idle.len() - count)
    }

    /// Has those that their clients have not kept waiting beyond their deadline wait for a worker, to be closed.
    pub fn expire(&mut self, now: std::time::Instant) {
        let late: Vec<u64> =
            self.parked.iter().filter(|(_, connection)| connection.deadline < now).map(|(token, _)| *token).collect();
        for token in late {
            if let Some(mut connection) = self.parked.remove(&token) {
                connection.expired = true;
                self.ready.push_back(connection);
            }
        }
    }
}

impl Front {
    /// Does something to the table, then wakes workers for the connections that are ready. `thread` is the caller's number.
    pub fn change(&self, thread: u32, change: impl FnOnce(&mut Table)) -> Result<(), Failure> {
        let wanted = self.table.with(&self.locks, thread, |table| {
            change(table);
            table.wanted()
        })?;
        for worker in wanted {
            self.scheduler.sched_wakeup(self.workers[worker])?;
        }
        Ok(())
    }

    /// Fresh connections, and those of which the kernel has told, are ready.
    pub fn ready(&self, thread: u32, fresh: Vec<Connection>, told: &[u64]) -> Result<(), Failure> {
        self.change(thread, |table| {
            for token in told {
                // One that was closed meanwhile is not there.
                table.ready.extend(table.parked.remove(token));
            }
            table.ready.extend(fresh.into_iter().map(Box::new));
        })
    }

    /// Puts back the connection that a worker has served, and gives it the next one; none: it is to block until it is woken.
    pub fn turn(
        &self,
        worker: usize,
        served: Option<(Box<Connection>, Next)>,
    ) -> Result<Option<Box<Connection>>, Failure> {
        self.table.with(&self.locks, WORKERS + worker as u32, |table| {
            match served {
                Some((connection, Next::Turn)) => table.ready.push_back(connection),
                Some((connection, next)) => self.park(table, connection, next),
                None => {}
            }
            let next = table.ready.pop_front();
            if next.is_none() && !table.idle.contains(&worker) {
                table.idle.push(worker);
            }
            next
        })
    }

    /// Who is told of it waits for the table's lock, and finds it parked then. One that cannot be watched ends here.
    fn park(&self, table: &mut Table, mut connection: Box<Connection>, next: Next) {
        if self.watch(&mut connection, next).is_ok() {
            table.parked.insert(connection.token, connection);
        }
    }

    /// Has the kernel tell once.
    fn watch(&self, connection: &mut Connection, next: Next) -> rustix::io::Result<()> {
        let data = EventData::new_u64(connection.token);
        let flags = EventFlags::ONESHOT | if next == Next::Writable { EventFlags::OUT } else { EventFlags::IN };
        if connection.watched {
            return epoll::modify(&self.epoll, &connection.socket, data, flags);
        }
        connection.watched = true;
        epoll::add(&self.epoll, &connection.socket, data, flags)
    }

    /// Takes new connections again if it was paused and there is room.
    pub fn resume(&self) -> Result<(), Failure> {
        if self.open.load(Ordering::SeqCst) < self.most && self.paused.swap(false, Ordering::SeqCst) {
            let data = EventData::new_u64(LISTENER);
            epoll::modify(&self.epoll, &self.listener, data, EventFlags::IN)
                .map_err(|error| Failure::Poll(error.into()))?;
        }
        Ok(())
    }
}
