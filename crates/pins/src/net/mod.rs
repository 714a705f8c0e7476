//! The pin `net`: which of the connections that the kernel lists belong to the program's descriptors.

mod diag;
mod table;

use crate::desk::Shared;
use crate::file;
use outlast_core::{Event, Failure, Payload, Pin};
use outlast_interfaces::net::{self, Connection, Measured, Traffic, MOST, NAME};
use outlast_interfaces::watch::Look;
use outlast_supervisor::decision::Process;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

pub struct Net(pub Shared);

impl Pin for Net {
    fn operate(&mut self, operation: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        if operation == net::WATCH {
            return self.0.borrow_mut().watch(NAME, &argument.read()?).map(|()| Payload::NONE);
        }
        let process = self.0.borrow().process_of(NAME, &argument.read::<String>()?)?;
        let mut connections = connections(&process);
        connections.truncate(MOST);
        Payload::of(&connections)
    }

    fn wanted(&mut self, _: &'static str, is_wanted: bool) {
        if !is_wanted {
            self.0.borrow_mut().sights.end(NAME);
        }
    }
}

pub fn measure(process: &Process, look: Look) -> Measured {
    let mut states = BTreeMap::new();
    let (mut unacknowledged, mut unread, mut traffic) = (0, 0, None);
    for connection in connections(process) {
        *states.entry(connection.state).or_default() += 1;
        unacknowledged += u64::from(connection.unacknowledged);
        unread += u64::from(connection.unread);
        if let Some(Traffic { sent, received, retransmits }) = connection.traffic {
            let all: &mut Traffic = traffic.get_or_insert_default();
            all.sent += sent;
            all.received += received;
            all.retransmits += retransmits;
        }
    }
    Measured { look, states: states.into_iter().collect(), unacknowledged, unread, traffic }
}

/// The program's.
fn connections(process: &Process) -> Vec<Connection> {
    let pid = process.pid;
    let paths = file::numbers(process).into_iter().filter_map(|number| file::path(pid, number));
    let sockets: BTreeSet<u64> = paths.filter_map(|path| socket(&path)).collect();
    if sockets.is_empty() {
        return Vec::new();
    }
    let list = |name| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    let lists = ["tcp", "tcp6"].map(list);
    let all = lists.iter().flat_map(|list| list.lines().filter_map(table::connection));
    let mut connections: Vec<_> = all.filter(|connection| sockets.contains(&connection.inode)).collect();
    if !connections.is_empty() && is_near(pid) {
        let traffic = diag::traffic(&sockets);
        for connection in &mut connections {
            connection.traffic = traffic.get(&connection.inode).copied();
        }
    }
    connections
}

/// Whether what the kernel tells us of connections is about those of that process.
fn is_near(pid: libc::pid_t) -> bool {
    let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/net")).ok();
    namespace("self").is_some_and(|own| namespace(&pid.to_string()) == Some(own))
}

/// The inode in `socket:[4711]`.
fn socket(path: &str) -> Option<u64> {
    path.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_interfaces::net::State;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    #[test]
    fn ones_own_connections_are_seen_with_what_went_over_them() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(&[1; 5000]).unwrap();
        far.read_exact(&mut [0; 2000]).unwrap();
        let own = Process { pid: std::process::id() as i32, life: 0, engine_fds: 0 };
        let all = connections(&own);
        let at = |local| all.iter().find(|c| c.state == State::Established && c.local == local).copied().unwrap();
        let (near, far) = (at(near.local_addr().unwrap()), at(far.local_addr().unwrap()));
        assert_eq!((near.remote, far.remote, far.unread), (far.local, near.local, 3000));
        assert_eq!(far.traffic.map(|traffic| traffic.received), Some(5000));
        assert!(all.iter().any(|c| c.state == State::Listening && c.local == listener.local_addr().unwrap()));
        let look = Look { at: Duration::ZERO, process: own.pid, life: 0 };
        let measured = measure(&own, look);
        assert!(measured.unread >= 3000 && measured.traffic.is_some_and(|traffic| traffic.received >= 5000));
    }

    #[test]
    fn inodes_of_sockets_only() {
        assert_eq!(socket("socket:[4711]"), Some(4711));
        for other in ["pipe:[4711]", "socket:[]", "socket:[-1]", "socket:[4711", "socket:[99999999999999999999]", ""] {
            assert_eq!(socket(other), None, "{other}");
        }
    }
}
