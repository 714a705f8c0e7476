//! What the pins that look at programs from outside tell, as a component is told.

use crate::bindings::outlast::module::looks as wit;
use crate::events::nanoseconds;
use outlast_interfaces::watch::Look;
use outlast_interfaces::{dbr, file, ipc, mem, net, pmc, sect, sig};
use std::net::{IpAddr, SocketAddr};

fn look(Look { at, process, life }: Look) -> wit::Look {
    wit::Look { at: nanoseconds(at), process, life }
}

pub fn wait(pmc::Wait { lock, at, owner }: pmc::Wait) -> wit::Wait {
    let lock = match lock {
        pmc::Lock::Mutex => wit::Lock::Mutex,
        pmc::Lock::ReadWriteLock => wit::Lock::ReadWriteLock,
    };
    wit::Wait { lock, at, owner }
}

fn section(section: sect::Section) -> wit::Section {
    match section {
        sect::Section::Named(address) => wit::Section::Named(address),
        sect::Section::Function(address) => wit::Section::Function(address),
        sect::Section::Symbol(number) => wit::Section::Symbol(number),
    }
}

pub fn sections(sect::Thread { thread, spent, inside, left }: sect::Thread) -> wit::Sections {
    let inside =
        inside.into_iter().map(|sect::Inside { section, run }| wit::Inside { section: self::section(section), run });
    let left = left.into_iter();
    let left = left.map(|sect::Left { section, run, exit }| wit::Left { section: self::section(section), run, exit });
    let (count, instructions) = (nanoseconds(spent.time), spent.instructions);
    wit::Sections { thread, count, instructions, inside: inside.collect(), left: left.collect() }
}

pub fn masks(sig::Masks { thread, blocked, pending, shared_pending }: sig::Masks) -> wit::Masks {
    wit::Masks { thread, blocked, pending, shared_pending }
}

pub fn signalled(sig::Told { signal, at, survived }: sig::Told) -> wit::Signalled {
    wit::Signalled { signal, at: nanoseconds(at), survived }
}

pub fn memory(measured: mem::Measured) -> wit::Memory {
    let mem::Measured { look, resident, anonymous, files, shared, swapped, limit } = measured;
    wit::Memory { look: self::look(look), resident, anonymous, files, shared, swapped, limit }
}

pub fn account(account: mem::Account) -> wit::Account {
    let mem::Account { resident, proportional, shared_clean, shared_dirty, private_clean, private_dirty, swapped } =
        account;
    wit::Account { resident, proportional, shared_clean, shared_dirty, private_clean, private_dirty, swapped }
}

pub fn page(page: mem::Page) -> wit::Page {
    match page {
        mem::Page::Absent => wit::Page::Absent,
        mem::Page::Swapped => wit::Page::Swapped,
        mem::Page::Present { exclusive, file } => wit::Page::Present(wit::Present { exclusive, file }),
    }
}

pub fn descriptor(file::Descriptor { number, kind, path, flags, offset }: file::Descriptor) -> wit::Descriptor {
    let kind = match kind {
        file::Kind::File => wit::Kind::File,
        file::Kind::Pipe => wit::Kind::Pipe,
        file::Kind::Socket => wit::Kind::Socket,
        file::Kind::Other => wit::Kind::Other,
    };
    wit::Descriptor { number, kind, path, flags, offset }
}

pub fn files(file::Counted { look, open, files, pipes, sockets, others, limit }: file::Counted) -> wit::Files {
    wit::Files { look: self::look(look), open, files, pipes, sockets, others, limit }
}

fn state(state: net::State) -> wit::State {
    use net::State as S;
    match state {
        S::Established => wit::State::Established,
        S::SynSent => wit::State::SynSent,
        S::SynReceived => wit::State::SynReceived,
        S::FinWait1 => wit::State::FinWait1,
        S::FinWait2 => wit::State::FinWait2,
        S::TimeWait => wit::State::TimeWait,
        S::Closed => wit::State::Closed,
        S::CloseWait => wit::State::CloseWait,
        S::LastAck => wit::State::LastAck,
        S::Listening => wit::State::Listening,
        S::Closing => wit::State::Closing,
        S::Other => wit::State::Other,
    }
}

fn address(address: SocketAddr) -> wit::SocketAddress {
    let ip = match address.ip() {
        IpAddr::V4(ip) => wit::IpAddress::V4(ip.octets().into()),
        IpAddr::V6(ip) => wit::IpAddress::V6(ip.segments().into()),
    };
    wit::SocketAddress { ip, port: address.port() }
}

fn traffic(net::Traffic { sent, received, retransmits }: net::Traffic) -> wit::Traffic {
    wit::Traffic { sent, received, retransmits }
}

pub fn connection(connection: net::Connection) -> wit::Connection {
    wit::Connection {
        inode: connection.inode,
        state: state(connection.state),
        local: address(connection.local),
        remote: address(connection.remote),
        unacknowledged: connection.unacknowledged,
        unread: connection.unread,
        traffic: connection.traffic.map(traffic),
    }
}

pub fn connections(measured: net::Measured) -> wit::Connections {
    let net::Measured { look, states, unacknowledged, unread, traffic } = measured;
    wit::Connections {
        look: self::look(look),
        states: states.into_iter().map(|(one, n)| (state(one), n)).collect(),
        unacknowledged,
        unread,
        traffic: traffic.map(self::traffic),
    }
}

pub fn pipe(ipc::Pipe { descriptor, inode, writes, fill, size }: ipc::Pipe) -> wit::Pipe {
    wit::Pipe { descriptor, inode, writes, fill, size }
}

pub fn passing(ipc::Measured { look, pipes, waits }: ipc::Measured) -> wit::Passing {
    wit::Passing {
        look: self::look(look),
        pipes: pipes.into_iter().map(pipe).collect(),
        waits: waits.into_iter().map(|(thread, wait)| (thread, self::wait(wait))).collect(),
    }
}

pub fn hit(dbr::Hit { watch, process, count, total }: dbr::Hit) -> wit::Hit {
    wit::Hit { watch, process, count, total }
}
