//! mq_notify: who is told when a message comes to an empty queue. The kernel keeps that with the queue, as the process that asked; the
//! anchor keeps the queue, and so this outlives the process. Nobody but that process can take it back, and nobody else gets its
//! signal. The queue says who is registered: that tells a recovered process whether a message has come.
//!
//! If so, it is sent the signal that the dead one would have had. If not, a process of its own waits for the message in its place
//! ([`notifier`]). What glue code of libc's waits for at a socket (SIGEV_THREAD) needs nothing: the kernel writes there, whoever lives.

use crate::commit::{commit, commit_at_gate};
use crate::control::{control, degrade, phase};
use crate::dispatch::{native, Call};
use crate::mutant::without;
use crate::notifier;
use crate::numbers;
use crate::periodic::Event;
use crate::queued::{self, Info};
use crate::signals::{bit, signal_code};
use crate::state::Engine;
use crate::sys::{nr, syscall};
use crate::thread::Thread;
use crate::user;
use core::sync::atomic::Ordering::AcqRel;
use outlast_image::context::pending_kind;
use outlast_image::degradation::Degradation;
use outlast_image::event::phase as at;
use outlast_image::kernel::Notification;
use outlast_image::mutant::Mutant;

pub const MQ_NOTIFY: u64 = 244;

const SIGEV_SIGNAL: u32 = 0;
const SIGEV_THREAD: u32 = 2;
/// `si_code` of the signal.
pub const SI_MESGQ: i32 = -3;
const EBUSY: i64 = -16;

/// mq_notify.
pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if call.args[1] == 0 {
        // Before the commit: that nobody is registered must not look as if a message had come.
        closing(e, call.fd());
    }
    if commit(e, call.pending(pending_kind::REDO)) == 0 {
        return native(call);
    }
    phase(at::OPERATION);
    let r = make(e, call, false);
    t.regs.rax = r as u64;
    commit_at_gate(e);
    phase(at::COMPLETED);
    r
}

/// Makes the call. `again`: a dead predecessor may have made it.
pub fn make(e: &mut Engine, call: &Call, again: bool) -> i64 {
    let (fd, at) = (call.fd(), call.args[1]);
    let event = if at == 0 { None } else { user::read::<Event>(at) };
    let seq = e.store().seq();
    // A predecessor that found nobody registered is whoever is now, if it has the number.
    let before = if again { notifier::registrar(seq) } else { 0 };
    if owner_of(fd) == Some(0) {
        notifier::register(seq, numbers::own() as u32);
    }
    let r = native(call);
    let (Some(identity), Some(owner)) = (identity(fd), owner_of(fd)) else {
        if r == 0 && at != 0 {
            // Who may only send to the queue cannot look at it.
            degrade(Degradation::KernelObject);
        }
        return r;
    };
    let place = e.kernel.notifications.iter().position(|n| n.inode == identity);
    let Some(event) = event else {
        if let (0, Some(place)) = (at, place) {
            forget(e, place);
        }
        return r;
    };
    let is_over =
        |place: usize| e.kernel.notifications[place].used == 0 && e.kernel.notifications[place].owner == owner;
    let is_made = r == EBUSY && before != 0 && before == owner;
    let is_left = r == EBUSY && place.is_some_and(is_over);
    let kind = event.notify as u32;
    if !is_made && is_left && kind == SIGEV_THREAD {
        // What the kernel has is another one, of a dead process, which only a message removes.
        degrade(Degradation::KernelObject);
        return r;
    }
    let by_dead = is_made || is_left;
    if r != 0 && !by_dead {
        return r;
    }
    let Some(place) = place.or_else(|| e.kernel.notifications.iter().position(|n| n.used == 0)) else {
        degrade(Degradation::KernelObject);
        return 0;
    };
    notifier::cancel(place);
    e.kernel.notifications[place] = Notification {
        used: 1,
        kind,
        signal: event.signal,
        fd,
        inode: identity,
        value: event.value,
        owner,
        by_dead: by_dead as u32,
    };
    e.kernel_dirty = true;
    if by_dead && kind == SIGEV_SIGNAL {
        wait_in_its_place(e, place);
    }
    0
}

fn forget(e: &mut Engine, place: usize) {
    notifier::cancel(place);
    (e.kernel.notifications[place].used, e.kernel_dirty) = (0, true);
}

/// What tells a queue from others; None: it is none. All queues of a namespace lie in one file system.
fn identity(fd: i32) -> Option<u64> {
    const MQUEUE_MAGIC: u64 = 0x1980_0202;
    let (mut fs, mut st) = ([0u64; 15], [0u64; 18]);
    // SAFETY: fstatfs writes 120 bytes, fstat 144.
    let told =
        unsafe { syscall!(nr::FSTATFS, fd, fs.as_mut_ptr()) == 0 && syscall!(nr::FSTAT, fd, st.as_mut_ptr()) == 0 };
    (told && fs[0] == MQUEUE_MAGIC).then_some(st[1])
}

/// The number of the process that is registered with the queue, 0 if there is none. None: the queue does not say.
pub fn owner_of(fd: i32) -> Option<u32> {
    const LABEL: &[u8] = b"NOTIFY_PID:";
    // "QSIZE:129 NOTIFY:0 SIGNO:10 NOTIFY_PID:4711", with spaces between.
    let mut text = [0u8; 128];
    // SAFETY: reads what the queue says of itself.
    let n = unsafe { syscall!(nr::PREAD64, fd, text.as_mut_ptr(), text.len(), 0) };
    let text = text.get(..usize::try_from(n).ok()?)?;
    let at = text.windows(LABEL.len()).position(|part| part == LABEL)? + LABEL.len();
    let digits = text[at..].iter().map_while(|c| (*c as char).to_digit(10));
    Some(digits.fold(0u32, |n, digit| n.wrapping_mul(10).wrapping_add(digit)))
}

/// Is it a signal that tells of a message? It comes again as long as the program has not taken it: the commit says so.
pub fn makes(info: &Info) -> bool {
    signal_code(info) == SI_MESGQ
}

/// The program has taken it: it is registered no more.
pub fn delivered(e: &mut Engine, info: &Info) {
    let is_it = |n: &&mut Notification| {
        n.used != 0 && n.kind == SIGEV_SIGNAL && n.signal == queued::signal_of(info) && n.value == info[3]
    };
    if let Some(n) = e.kernel.notifications.iter_mut().find(is_it) {
        (n.used, e.kernel_dirty) = (0, true);
    }
}

/// The program has read these from a signalfd: `struct signalfd_siginfo`, one after the other.
pub fn delivered_records(e: &mut Engine, bytes: &[u8]) {
    for record in bytes.chunks_exact(128) {
        let word = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap_or([0; 8]));
        let mut info = [0; 16];
        (info[0], info[1], info[3]) = (word(0) & 0xffff_ffff, word(8) & 0xffff_ffff, word(48));
        if makes(&info) {
            delivered(e, &info);
        }
    }
}

/// Is the program registered anywhere?
pub fn any(e: &Engine) -> bool {
    e.kernel.notifications.iter().any(|n| n.used != 0)
}

/// The program is about to close a descriptor: if it is one of a queue where it is registered, that ends, which others may see.
pub fn closing(e: &mut Engine, fd: i32) -> bool {
    if !any(e) {
        return false;
    }
    let Some(identity) = identity(fd) else { return false };
    let place = e.kernel.notifications.iter().position(|n| n.used != 0 && n.inode == identity);
    place.map(|place| forget(e, place)).is_some()
}

/// The program ends. The anchor has the same descriptors, so that none is closed.
pub fn end(e: &mut Engine) {
    for n in e.kernel.notifications.iter().filter(|n| n.used != 0) {
        // SAFETY: has an effect only if this process is registered.
        unsafe { syscall!(MQ_NOTIFY, n.fd, 0) };
    }
}

/// The program becomes another one, which is not told of anything.
pub fn leave(e: &Engine) {
    for place in 0..e.kernel.notifications.len() {
        notifier::cancel(place);
    }
}

/// It has not become another one.
pub fn come_back(e: &mut Engine) {
    for place in 0..e.kernel.notifications.len() {
        let n = e.kernel.notifications[place];
        if n.used != 0 && n.kind == SIGEV_SIGNAL && n.by_dead != 0 {
            wait_in_its_place(e, place);
        }
    }
}

/// The program has just sent a message to a queue, or taken one: if it is to be told of a message, it is told before it goes on.
pub fn look(e: &mut Engine) {
    for place in 0..e.kernel.notifications.len() {
        let n = e.kernel.notifications[place];
        let is_waiting = n.used != 0 && n.kind == SIGEV_SIGNAL && n.by_dead != 0;
        if is_waiting && owner_of(n.fd) != Some(n.owner) && notifier::cancel(place) {
            send(&n);
        }
    }
}

fn wait_in_its_place(e: &mut Engine, place: usize) {
    if !notifier::start(place, &e.kernel.notifications[place]) {
        degrade(Degradation::KernelObject);
    }
}

/// `struct siginfo` of the signal. Who sent the message is not known any more.
pub fn information(n: &Notification) -> Info {
    let mut info = [0; 16];
    (info[0], info[1], info[3]) = (n.signal as u32 as u64, SI_MESGQ as u32 as u64, n.value);
    info
}

fn send(n: &Notification) {
    if (1..=64).contains(&n.signal) {
        queued::send(&information(n));
    }
}

/// Has this process wait for what the dead one waited for. All signals are blocked. `in_place`: it is the same process.
pub fn restore(e: &mut Engine, in_place: bool) {
    if without(Mutant::Notifications) {
        return;
    }
    for place in 0..e.kernel.notifications.len() {
        let n = e.kernel.notifications[place];
        if n.used == 0 {
            continue;
        }
        if identity(n.fd) != Some(n.inode) {
            forget(e, place);
            continue;
        }
        if !in_place && n.by_dead == 0 {
            (e.kernel.notifications[place].by_dead, e.kernel_dirty) = (1, true);
        }
        if n.kind != SIGEV_SIGNAL {
            continue;
        }
        let is_there = owner_of(n.fd) == Some(n.owner);
        if in_place {
            // Its notifier, if it needs one, has not noticed anything.
            if !is_there && !is_pending(n.signal) {
                notifier::cancel(place);
                send(&n);
            }
        } else if is_there {
            wait_in_its_place(e, place);
        } else {
            send(&n);
            // It was pending when the dead process died.
            control().missed.fetch_and(!pending_bit(n.signal), AcqRel);
        }
    }
}

fn pending_bit(sig: i32) -> u64 {
    if (1..=64).contains(&sig) {
        bit(sig)
    } else {
        0
    }
}

fn is_pending(sig: i32) -> bool {
    let mut set = 0u64;
    // SAFETY: the kernel writes 8 bytes.
    unsafe { syscall!(nr::RT_SIGPENDING, &raw mut set, 8) };
    set & pending_bit(sig) != 0
}
