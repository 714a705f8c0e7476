//! Interest lists of epoll (see also `interests`). They live in the kernel's object, which the anchor keeps: a change is committed before and
//! after, and made again only if it had not been made.

use crate::calls::objects;
use crate::dispatch::{self, interruptible, Call};
use crate::interests;
use crate::mutant::without;
use crate::proc;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::user;
use outlast_image::kernel::{interests as any_of, one_shot as use_of};
use outlast_image::mutant::Mutant;

pub const EPOLL_CTL: u64 = 233;
const ADD: u64 = 1;
const DEL: u64 = 2;
const MOD: u64 = 3;
const ENOENT: i64 = -2;
pub const EPOLLONESHOT: u32 = 1 << 30;
/// What is left of an interest with EPOLLONESHOT once it was reported: EPOLLEXCLUSIVE, EPOLLWAKEUP, EPOLLONESHOT, EPOLLET.
pub const MANNER: u32 = 0xf << 28;

/// epoll_ctl.
pub fn control(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    objects::change(e, t, call, note)
}

/// Keeps what was changed.
fn note(e: &mut Engine, call: &Call, r: i64) {
    let [epoll, change, fd, event, ..] = call.args;
    let (epoll, fd) = (epoll as i32, fd as i32);
    if r != 0 {
        return;
    }
    if change == DEL {
        return interests::forgotten(epoll, fd);
    }
    let (events, word) = Interest::parts(&user::read::<[u8; 12]>(event).unwrap_or_default());
    let has_room = interests::armed(epoll, fd, events, word);
    kept(e, events, has_room);
}

/// The program has such an interest, and there is room for it or not.
fn kept(e: &mut Engine, events: u32, has_room: bool) {
    let wanted = if has_room { any_of::KEPT } else { any_of::TOO_MANY };
    if e.kernel.interests < wanted {
        (e.kernel.interests, e.kernel_dirty) = (wanted, true);
    }
    if events & EPOLLONESHOT == 0 {
        return;
    }
    if e.kernel.one_shot == use_of::NONE {
        (e.kernel.one_shot, e.kernel_dirty) = (use_of::KEPT, true);
        dispatch::slow_down_waits(false);
    }
    if !has_room && e.kernel.one_shot != use_of::TOO_MANY {
        (e.kernel.one_shot, e.kernel_dirty) = (use_of::TOO_MANY, true);
    }
}

/// Takes note of the interests of an epoll that was there before the engine. One that comes once and is not armed any more is the
/// program's to arm. `buf`: room for what /proc says of it.
pub fn found(e: &mut Engine, epoll: i32, buf: &mut [u8]) {
    for interest in interests(epoll, buf) {
        let is_armed = !is_spent(interest.events);
        let has_room = interests::found(epoll, interest.fd, interest.events, interest.data, is_armed);
        kept(e, interest.events, has_room);
    }
}

/// A change that a predecessor may have made already; `r` is what making it now returned.
pub fn repeated(e: &mut Engine, call: &Call, r: i64) -> i64 {
    let r = match (call.args[1], r) {
        // Others may have taken its event meanwhile.
        (ADD, err::EEXIST) => {
            let mut args = call.args;
            args[1] = MOD;
            dispatch::native(&Call { nr: call.nr, args })
        }
        (DEL, ENOENT) => 0,
        _ => r,
    };
    note(e, call, r);
    r
}

/// Is it one with EPOLLONESHOT that was reported?
pub fn is_spent(events: u32) -> bool {
    events & EPOLLONESHOT != 0 && events & !MANNER == 0
}

/// What a wait for events returned: the program has them, and one that comes once will not come again. All may have been
/// such as it is not to get, which is 0 where nothing else came.
pub fn waited(e: &Engine, call: &Call, r: i64) -> i64 {
    if r <= 0 || e.kernel.one_shot == use_of::NONE || without(Mutant::OneShot) {
        return r;
    }
    interests::reported(call.fd(), call.args[1], r)
}

/// Waits for events.
pub fn wait(e: &Engine, t: &mut Thread, call: &Call) -> i64 {
    loop {
        let r = interruptible(t, call);
        let left = waited(e, call, r);
        if left > 0 || r <= 0 {
            return left;
        }
    }
}

/// Is it a call that waits for events?
pub fn waits(nr: u64) -> bool {
    matches!(nr, nr::EPOLL_WAIT | nr::EPOLL_PWAIT | nr::EPOLL_PWAIT2)
}

/// An event of the interest was served that the kernel does not know of. It goes on watching for errors, whatever it is told:
/// [`waited`] leaves them out.
pub fn spend(epoll: i32, interest: &Interest) {
    if interest.events & EPOLLONESHOT != 0 {
        set(epoll, &Interest { events: interest.events & MANNER, ..*interest });
    }
}

/// Has the epoll watch what is open under the interest's number now.
pub fn watch(epoll: i32, interest: &Interest) -> i64 {
    // SAFETY: the program had it watched; one that is watched already stays as it is.
    unsafe { syscall!(EPOLL_CTL, epoll, ADD, interest.fd, interest.event().as_ptr()) }
}

/// Has it do so no more.
pub fn leave(epoll: i32, fd: i32) {
    // SAFETY: takes away what was watched under the number; if nothing was, there is no effect.
    unsafe { syscall!(EPOLL_CTL, epoll, DEL, fd, 0) };
}

fn set(epoll: i32, interest: &Interest) {
    // SAFETY: changes an interest that is there.
    unsafe { syscall!(EPOLL_CTL, epoll, MOD, interest.fd, interest.event().as_ptr()) };
}

/// What an epoll watches.
pub struct Interest {
    pub fd: i32,
    pub events: u32,
    pub data: u64,
}

/// What the epoll behind `fd` watches; nothing, if it is none. `buf`: room for what /proc says of it.
pub fn interests(fd: i32, buf: &mut [u8]) -> impl Iterator<Item = Interest> + '_ {
    proc::info(fd, buf).split(|&b| b == b'\n').filter_map(Interest::parse)
}

impl Interest {
    /// `tfd: FD events: HEX data: HEX …`
    fn parse(line: &[u8]) -> Option<Interest> {
        line.strip_prefix(b"tfd:")?;
        let mut words = line.split(|b| *b == b' ' || *b == b'\t').filter(|word| !word.is_empty());
        let mut value = |radix| words.by_ref().nth(1).map_or(0, |word| number(word, radix));
        let (fd, events, data) = (value(10), value(16), value(16));
        Some(Interest { fd: fd as i32, events: events as u32, data })
    }

    /// Events and data of a `struct epoll_event`, which is packed.
    fn parts(event: &[u8; 12]) -> (u32, u64) {
        let mut data = [0; 8];
        data.copy_from_slice(&event[4..]);
        (u32::from_le_bytes([event[0], event[1], event[2], event[3]]), u64::from_le_bytes(data))
    }

    /// As the kernel has it: `struct epoll_event` is packed, 4 bytes of events, 8 of data.
    fn event(&self) -> [u8; 12] {
        let mut event = [0u8; 12];
        event[..4].copy_from_slice(&self.events.to_le_bytes());
        event[4..].copy_from_slice(&self.data.to_le_bytes());
        event
    }
}

/// Edges that the dead process took since the commit would be lost: sets every interest again, which makes the kernel
/// report what is ready now. `fd` is a descriptor of the program's; anything but an epoll is left alone.
pub fn rearm(fd: i32, buf: &mut [u8]) {
    for interest in interests(fd, buf) {
        let kept = if without(Mutant::OneShot) { None } else { interests::find_once(fd, interest.fd) };
        match kept {
            Some(kept) if kept.armed != 0 => set(fd, &Interest { events: kept.events, data: kept.word, ..interest }),
            // It was reported before the commit, and is the program's to arm.
            Some(_) => {}
            None => set(fd, &interest),
        }
    }
}

fn number(word: &[u8], radix: u32) -> u64 {
    word.iter()
        .map_while(|c| (*c as char).to_digit(radix))
        .fold(0u64, |v, d| v.wrapping_mul(radix as u64).wrapping_add(d as u64))
}
