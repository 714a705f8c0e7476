//! Lines of `/proc/PID/net/tcp` and `tcp6`.

use outlast_interfaces::net::{Connection, State};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// `0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 …`; none: it is a heading, or unknown.
pub fn connection(line: &str) -> Option<Connection> {
    let fields: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
    let [_, local, remote, state, queues, _, _, _, _, inode] = fields[..] else { return None };
    let (unacknowledged, unread) = queues.split_once(':')?;
    Some(Connection {
        inode: inode.parse().ok()?,
        state: state_of(u8::from_str_radix(state, 16).ok()?),
        local: address(local)?,
        remote: address(remote)?,
        unacknowledged: u32::from_str_radix(unacknowledged, 16).ok()?,
        unread: u32::from_str_radix(unread, 16).ok()?,
        traffic: None,
    })
}

/// Words of 32 bits, each as the processor would print it, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |n: usize| Some(u32::from_str_radix(ip.get(8 * n..8 * n + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            IpAddr::from(Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|n| words[n / 4][n % 4])))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// From the kernel's `TCP_ESTABLISHED` = 1 on.
fn state_of(number: u8) -> State {
    const STATES: [State; 11] = [
        State::Established,
        State::SynSent,
        State::SynReceived,
        State::FinWait1,
        State::FinWait2,
        State::TimeWait,
        State::Closed,
        State::CloseWait,
        State::LastAck,
        State::Listening,
        State::Closing,
    ];
    let state = usize::from(number).checked_sub(1).and_then(|n| STATES.get(n));
    // One more is that of requests for connections.
    state.copied().unwrap_or(if number == 12 { State::SynReceived } else { State::Other })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_each_family() {
        let line = "   0: 0100007F:1F90 0200007F:0050 01 00000010:00000020 00:00000000 00000000  1000        0 4711 1 0 20 4 30 10 -1";
        let seen = connection(line).unwrap();
        assert_eq!((seen.local, seen.remote), ("127.0.0.1:8080".parse().unwrap(), "127.0.0.2:80".parse().unwrap()));
        assert_eq!((seen.inode, seen.state, seen.unacknowledged, seen.unread), (4711, State::Established, 16, 32));
        let line =
            "1: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 5 1";
        let seen = connection(line).unwrap();
        assert_eq!((seen.local, seen.state), ("[::1]:22".parse().unwrap(), State::Listening));
    }

    #[test]
    fn what_is_no_such_line_is_none() {
        let hostile = [
            "",
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
            "0: 0100007F:1F90 0200007F:0050 01 00000010 00:0 0 0 0 5",
            "0: é100007F:1F90 0200007F:0050 01 0:0 00:0 0 0 0 5",
            "0: ééééé:1F90 0200007F:0050 01 0:0 00:0 0 0 0 5",
            "0: 0100007F:1F901 0200007F:0050 01 0:0 00:0 0 0 0 5",
            "0: 0100007F:1F90 0200007F:0050 FFF 0:0 00:0 0 0 0 5",
        ];
        for line in hostile {
            assert_eq!(connection(line), None, "{line}");
        }
        assert_eq!([0, 12, 13, 255].map(state_of), [State::Other, State::SynReceived, State::Other, State::Other]);
    }
}
