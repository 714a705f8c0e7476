//! The line between templates and the manager's keeper: letters one way, by a socket that no instance has; a verdict the other way, in
//! memory, so that a late one is known by its number.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use outlast_interfaces::comp::Death;
use outlast_interfaces::hang::OfComponent;
use serde::{Deserialize, Serialize};

use crate::futex;
use crate::passage::Passage;

use super::{Happened, PATIENCE};

/// Names the socket that a template inherits, its component's number, and when calls hang ([`OfComponent`], in nanoseconds).
pub const VARIABLE: &str = "OUTLAST_KEEPER";
/// More than any letter has.
const LETTER: usize = 16 << 10;

#[derive(Debug, Serialize, Deserialize)]
pub struct Letter {
    pub component: u32,
    pub word: Word,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Word {
    Happened(Happened),
    /// A template wants a verdict, by this number.
    Asked(u32, Death),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Reboot,
    GiveUp,
    /// No module has decided: the template's own does.
    Nobody,
}

const VERDICTS: [Verdict; 3] = [Verdict::Reboot, Verdict::GiveUp, Verdict::Nobody];

/// The two ends: from which letters come, and to which they go.
pub fn pair() -> io::Result<[OwnedFd; 2]> {
    Passage::pair()
}

/// Never waits. A letter for which there is no room is lost: what it says must not keep anybody waiting.
pub fn send(socket: &OwnedFd, letter: &Letter) -> bool {
    let Ok(bytes) = postcard::to_allocvec(letter) else { return false };
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: reads live bytes.
    let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
    sent == bytes.len() as isize
}

/// The next letter; None when no more will come.
pub fn receive(socket: &OwnedFd) -> Option<Letter> {
    let mut bytes = vec![0u8; LETTER];
    loop {
        // SAFETY: fills live bytes.
        let got = unsafe { libc::recv(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        match got {
            0 => return None,
            got if got > 0 => {
                if let Ok(letter) = postcard::from_bytes(&bytes[..got as usize]) {
                    return Some(letter);
                }
            }
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => (),
            _ => return None,
        }
    }
}

/// Tells a template what was decided.
pub fn answer(place: &AtomicU32, number: u32, verdict: Verdict) {
    let code = VERDICTS.iter().position(|known| *known == verdict).unwrap_or(VERDICTS.len() - 1) as u32;
    place.store(number << 2 | code, SeqCst);
    futex::wake(place);
}

/// A template's end.
pub struct Line {
    socket: OwnedFd,
    component: u32,
    asked: u32,
    pub hang: OfComponent,
}

impl Line {
    /// The variable's.
    pub fn text(socket: RawFd, component: u32, hang: OfComponent) -> String {
        format!("{socket},{component},{},{}", hang.still.as_nanos(), hang.alone.as_nanos())
    }

    /// What the manager left, if it keeps the system.
    pub fn inherited() -> Option<Self> {
        let text = std::env::var(VARIABLE).ok()?;
        std::env::remove_var(VARIABLE);
        let mut parts = text.split(',');
        let socket: RawFd = parts.next()?.parse().ok()?;
        let component = parts.next()?.parse().ok()?;
        let mut time = || Some(Duration::from_nanos(parts.next()?.parse().ok()?));
        let hang = OfComponent { still: time()?, alone: time()? };
        // SAFETY: the manager opened it for this process, which has no other name for it.
        let socket = unsafe {
            libc::fcntl(socket, libc::F_SETFD, libc::FD_CLOEXEC);
            OwnedFd::from_raw_fd(socket)
        };
        Some(Self { socket, component, asked: 0, hang })
    }

    pub fn tell(&self, happened: Happened) {
        send(&self.socket, &Letter { component: self.component, word: Word::Happened(happened) });
    }

    /// What is to be done about a death; None: nobody has decided in time.
    pub fn ask(&mut self, death: &Death, place: &AtomicU32) -> Option<Verdict> {
        // Never 0, which is what nobody has written yet.
        self.asked = (self.asked % (u32::MAX >> 2)) + 1;
        // Nothing of a template before this one, which may have asked by the same number.
        place.store(0, SeqCst);
        let word = Word::Asked(self.asked, death.clone());
        if !send(&self.socket, &Letter { component: self.component, word }) {
            return None;
        }
        let until = Instant::now() + PATIENCE;
        loop {
            let word = place.load(SeqCst);
            if word >> 2 == self.asked {
                return VERDICTS.get((word & 3) as usize).copied();
            }
            let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
            futex::wait(place, word, Some(left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_interfaces::comp::{Hang, Stays};
    use outlast_interfaces::hang::USUAL;

    fn death() -> Death {
        Death {
            process: 7,
            end: None,
            hung: false,
            completed: 0,
            started: true,
            wanted: true,
            lived: Duration::ZERO,
            descriptors: 3,
            recovered: 2,
        }
    }

    #[test]
    fn a_verdict_that_comes_too_late_is_none_on_the_next_death() {
        let [from, to] = pair().expect("a socket");
        let place = AtomicU32::new(0);
        let mut line = Line { socket: to, component: 4, asked: 0, hang: USUAL };
        assert_eq!(line.ask(&death(), &place), None);
        let late = receive(&from).expect("a letter");
        let Word::Asked(number, asked) = late.word else { panic!("{late:?}") };
        assert_eq!((late.component, asked), (4, death()));
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| line.ask(&death(), &place));
            let next = receive(&from).expect("a letter");
            let Word::Asked(now, _) = next.word else { panic!("{next:?}") };
            answer(&place, number, Verdict::GiveUp);
            answer(&place, now, Verdict::Reboot);
            assert_eq!(asking.join().expect("no panic"), Some(Verdict::Reboot));
        });
    }

    #[test]
    fn who_reads_no_letters_keeps_nobody_waiting() {
        let [_from, to] = pair().expect("a socket");
        let line = Line { socket: to, component: 0, asked: 0, hang: USUAL };
        for _ in 0..100_000 {
            line.tell(Happened::Hung(1, Hang { operation: 2, why: Stays::Still(USUAL.still) }));
        }
    }
}
