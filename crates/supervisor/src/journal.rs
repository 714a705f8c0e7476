//! systemd's journal, by its native protocol: one datagram an entry, fields with names. Whoever sends never waits: what the journal does
//! not take at once it does not get.

use crate::log::Entry;
use rustix::net::{sendto, socket_with, AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

/// Where the journal listens.
const SOCKET: &str = "/run/systemd/journal/socket";
/// The variable that names another socket.
pub const VARIABLE: &str = "OUTLAST_JOURNAL_SOCKET";

/// Where it listens here.
pub fn socket() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| SOCKET.into())
}

/// Names, which are of capital letters and underscores, and what they are.
pub type Fields = Vec<(&'static str, String)>;

/// Sends one entry. False: nobody listens, or there is no room.
pub fn send(socket: &str, fields: &Fields) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let Ok(address) = SocketAddrUnix::new(socket) else { return false };
    let Ok(from) = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None) else { return false };
    sendto(&from, &encoded(fields), SendFlags::DONTWAIT | SendFlags::NOSIGNAL, &address).is_ok()
}

/// Values of one line as text, others with their length.
fn encoded(fields: &Fields) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.extend(name.as_bytes());
        if value.contains('\n') {
            bytes.push(b'\n');
            bytes.extend((value.len() as u64).to_le_bytes());
        } else {
            bytes.push(b'=');
        }
        bytes.extend(value.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

impl Entry {
    /// As the journal has it.
    pub(crate) fn fields(&self, program: &str) -> Fields {
        let event = serde_json::to_value(self.event).ok().and_then(|event| event.as_str().map(String::from));
        let mut fields = vec![
            ("MESSAGE", format!("{program}: {}", self.sentence())),
            ("MESSAGE_ID", self.event.message_id().into()),
            ("PRIORITY", self.event.priority().to_string()),
            ("SYSLOG_IDENTIFIER", "outlast".into()),
            ("OUTLAST_NAME", program.into()),
            ("OUTLAST_EVENT", event.unwrap_or_default()),
        ];
        let others = [
            ("OUTLAST_CAUSE", self.cause.clone()),
            ("OUTLAST_RUNG", self.rung.map(|rung| rung.to_string())),
            ("OUTLAST_DURATION_US", self.duration_us.map(|us| us.to_string())),
            ("OUTLAST_PHASE", self.phase.clone()),
            ("OUTLAST_SEQ", self.seq.map(|seq| seq.to_string())),
            ("OUTLAST_PID", self.pid.filter(|pid| *pid > 0).map(|pid| pid.to_string())),
        ];
        fields.extend(others.into_iter().filter_map(|(name, value)| Some((name, value?))));
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_named_makes_no_field_of_its_own() {
        let fields = vec![("MESSAGE", "a\nPRIORITY=0".into()), ("OUTLAST_NAME", "it".into())];
        let expected = [b"MESSAGE\n\x0c\0\0\0\0\0\0\0a\nPRIORITY=0\n".as_slice(), b"OUTLAST_NAME=it\n"].concat();
        assert_eq!(encoded(&fields), expected);
    }

    #[test]
    fn each_kind_of_event_has_a_number_of_its_own() {
        use crate::log::Kind;
        let kinds = [Kind::Start, Kind::Killed, Kind::Recovered, Kind::Storm, Kind::GaveUp, Kind::Exit];
        let ids: std::collections::BTreeSet<_> = kinds.iter().map(|kind| kind.message_id()).collect();
        assert!(ids.len() == kinds.len() && ids.iter().all(|id| id.len() == 32), "{ids:?}");
    }
}
