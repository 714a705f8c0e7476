//! Filters of system calls that the program has installed on itself (seccomp). The kernel keeps and enforces them; the engine has a
//! copy, in its own memory and so in that of every anchor that is cloned later, and asks it
//!
//! - whether it can go on making the calls that it needs ([`outlast_filter::needs`]), before a filter is installed;
//! - what becomes of a call of the program's, before it is served: most are made in other ways than the program makes them, and some
//!   by the engine alone;
//! - whether it may try what it could do without.
//!
//! Like the filters themselves the copies never come from the store. By an execve they go through the session to the engine in the
//! new image, as the filters stay.

use crate::dispatch::Call;
use crate::mutant::without;
use crate::state::{engine, OwnFd};
use crate::sys::{err, nr, syscall};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use outlast_filter::needs::{Need, APART, CONNECTION, ENTRY, NEEDS};
use outlast_filter::{reads_address, strictest, verdict, verdicts, Instruction, Question, Verdict, LONGEST};
use outlast_image::filters::{HandedOver, HEAD_LEN, MOST, ROOM};
use outlast_image::layout::{session, SESSION_BASE};
use outlast_image::mutant::Mutant;

/// Calls that a bitmap knows; of those with higher numbers each is asked about.
const KNOWN: usize = 512;

struct Filters {
    code: [Instruction; ROOM],
    /// Where each of them ends.
    ends: [usize; MOST],
}

const NOTHING: Instruction = Instruction { code: 0, jt: 0, jf: 0, k: 0 };
static mut FILTERS: Filters = Filters { code: [NOTHING; ROOM], ends: [0; MOST] };
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Calls that a filter does not let pass, whatever their arguments.
static ASKED: [AtomicU64; KNOWN / 64] = [const { AtomicU64::new(0) }; KNOWN / 64];

/// The copies of the filters.
///
/// # Safety
/// The caller has the engine's lock, or is an anchor.
unsafe fn filters() -> &'static mut Filters {
    let this = &raw mut FILTERS;
    &mut *this
}

fn used(filters: &Filters) -> usize {
    COUNT.load(Relaxed).checked_sub(1).map_or(0, |last| filters.ends[last])
}

/// Has the program any?
pub fn exist() -> bool {
    COUNT.load(Relaxed) != 0
}

/// Does it depend on more than its number whether the call is made, or is it not made?
pub fn asks(nr: u64) -> bool {
    match ASKED.get(nr as usize / 64) {
        Some(word) => word.load(Relaxed) >> (nr % 64) & 1 != 0,
        None => exist(),
    }
}

/// May the engine try this call, with whatever arguments?
pub fn permit(nr: u32) -> bool {
    !asks(nr as u64)
}

/// Each filter, in the order in which they were installed.
fn each(f: &mut dyn FnMut(&[Instruction])) {
    // SAFETY: only read, and installed under the engine's lock.
    let filters = unsafe { filters() };
    let mut start = 0;
    for &end in &filters.ends[..COUNT.load(Relaxed)] {
        f(&filters.code[start..end]);
        start = end;
    }
}

/// What the filters say of a call that the program makes with its instruction before `address`.
pub fn judge(call: &Call, address: u64) -> Verdict {
    const ALLOW: u32 = 0x7fff_0000;
    let question = Question { nr: call.nr as u32, address: Some(address), args: call.args.map(Some) };
    let mut value = ALLOW;
    // A valid filter knows everything that it asks for; what is none the kernel has refused.
    each(&mut |filter| value = strictest(value, verdict(filter, &question).unwrap_or(0)));
    Verdict::of(value)
}

/// Room for a copy of a filter that is not installed yet. None: there is not enough.
pub fn room(len: usize) -> Option<&'static mut [Instruction]> {
    // SAFETY: the caller has the engine's lock; what is not counted nobody looks at.
    let filters = unsafe { filters() };
    let start = used(filters);
    (COUNT.load(Relaxed) < MOST).then(|| filters.code.get_mut(start..start + len)).flatten()
}

/// Does a filter allow all that the engine needs? Not if it looks at addresses: the engine makes calls at its own.
pub fn suits(filter: &[Instruction]) -> bool {
    let allows = |question| verdicts(filter, &question).is_allowed();
    let apart = if crate::anchor::is_made_apart() { APART } else { &[] };
    !reads_address(filter) && NEEDS.iter().chain(apart).all(|need| need.questions().all(allows))
}

/// Does a filter let the call pass, with whatever arguments?
pub fn lets_pass(filter: &[Instruction], nr: u32) -> bool {
    verdicts(filter, &Question::any(nr)).is_allowed()
}

/// The kernel has installed the filter of this length that [`room`] has a copy of.
pub fn installed(len: usize) {
    // SAFETY: the caller has the engine's lock.
    let filters = unsafe { filters() };
    let start = used(filters);
    let count = COUNT.load(Relaxed);
    filters.ends[count] = start + len;
    let filter = &filters.code[start..start + len];
    for (n, word) in ASKED.iter().enumerate() {
        let asked =
            (0..64).filter(|bit| !lets_pass(filter, (n * 64 + bit) as u32)).fold(0, |bits, bit| bits | 1 << bit);
        word.fetch_or(asked, Relaxed);
    }
    COUNT.store(count + 1, Relaxed);
}

/// Do all filters allow these calls?
fn allow(needs: &[Need]) -> bool {
    let mut allowed = true;
    each(&mut |filter| {
        let allows = |question| verdicts(filter, &question).is_allowed();
        allowed = allowed && needs.iter().all(|need| need.questions().all(allows));
    });
    allowed
}

/// What the next image of the program is told.
fn handed_over() -> *mut HandedOver {
    (SESSION_BASE + session::FILTERS) as *mut HandedOver
}

/// Leaves the copies to the engine in the image that the program is about to become; false if that one could not be protected.
pub fn hand_over() -> bool {
    let (count, to) = (COUNT.load(Relaxed), handed_over());
    if count == 0 {
        // There were none before either: filters stay, and so does what they were told by.
        return true;
    }
    // SAFETY: the caller has the engine's lock. A part of the session that nobody else uses, and that has room from here on.
    unsafe {
        let filters = filters();
        let len = used(filters);
        let room = (HEAD_LEN + len * size_of::<Instruction>()) as u64;
        let r = syscall!(nr::FALLOCATE, engine().own_fd(OwnFd::Session), 0, session::FILTERS, room);
        if err::is(r) || !allow(ENTRY) {
            return false;
        }
        (*to).may_connect = allow(CONNECTION) as u64;
        for (end, known) in (*to).ends.iter_mut().zip(&filters.ends[..count]) {
            *end = *known as u64;
        }
        (&raw mut (*to).code).cast::<Instruction>().copy_from_nonoverlapping(filters.code.as_ptr(), len);
        (*to).count = count as u64;
    }
    true
}

/// Takes what the image before left; false if that cannot be. In a fresh image.
pub fn take_over() -> bool {
    if without(Mutant::HandedFilters) {
        return true;
    }
    let mut count = 0usize;
    // A look at the mapping would give it room, which there may not be.
    // SAFETY: the kernel writes 8 bytes.
    let r = unsafe { syscall!(nr::PREAD64, engine().own_fd(OwnFd::Session), &raw mut count, 8, session::FILTERS) };
    if r != 8 || count > MOST {
        return false;
    }
    if count == 0 {
        return true;
    }
    // SAFETY: nobody writes there now, and every bit pattern is valid.
    let from = unsafe { &*handed_over() };
    let mut start = 0;
    for &end in &from.ends[..count] {
        let end = end as usize;
        if !(start + 1..=(start + LONGEST).min(ROOM)).contains(&end) {
            return false;
        }
        let Some(copy) = room(end - start) else { return false };
        copy.copy_from_slice(bytemuck::cast_slice(&from.code[start..end]));
        installed(end - start);
        start = end;
    }
    true
}
