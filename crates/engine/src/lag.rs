//! Commits that reach the medium some time later (`--durable DURATION`).
//!
//! A loss of power takes the program back to its last commit that was *settled*, and its files must be as they were then. So what it
//! does to them is either preceded by a commit that settles, as everything is where commits may not lag, or can be taken back without any
//! note: a file that has *grown* since is cut off where it ended. Commits settle
//!
//! - before every change of a file but growth, as its witness does then for the one change that may or may not have been made;
//! - before the program syncs files itself, ends, or executes another program: what it takes for safe is;
//! - before the store is folded.
//!
//! Otherwise a timer has the last commit settled, whatever the program does then; so does a wait that begins when half of the time is over,
//! which the timer would cut short.

use crate::calls::write_file;
use crate::control::degrade;
use crate::descriptors::for_each_open;
use crate::dispatch::Call;
use crate::medium::{changes_attributes, FDATASYNC, FSYNC, SYNC};
use crate::periodic;
use crate::state::{object, Engine};
use crate::sys::{now_ns, nr, syscall};
use crate::undo::{self, Identity, Look};
use bytemuck::{Pod, Zeroable};
use outlast_calls::{row, Class};
use outlast_image::degradation::Degradation;
use outlast_image::descriptor::descriptor_kind as kind;
use outlast_image::inject::option;

const CLOCK_MONOTONIC: u64 = 1;
const MSYNC: u64 = 26;
const SYNC_FILE_RANGE: u64 = 277;
const SYNCFS: u64 = 306;
const O_DSYNC: i64 = 0o10000;
const MOST: usize = 32;

/// A file that the program writes to.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Growing {
    file: Identity,
    /// Its size now; in the store: at the commit.
    size: u64,
    /// Nobody else had it open when it was last asked.
    is_alone: u64,
}

const NOTHING: Growing = Growing { file: Identity::NONE, size: 0, is_alone: 0 };
const UNKNOWN: u64 = u64::MAX;

/// What lags.
pub struct Lag {
    files: [Growing; MOST],
    count: usize,
    /// Sizes as the last commit has them, and the last settled one; [`UNKNOWN`]: it has not.
    committed: [u64; MOST],
    settled: [u64; MOST],
    /// The files are not those in the store.
    dirty: bool,
    /// The call that is served is one that a settled commit stands before.
    must: bool,
    /// The timer, as its id plus one; 0: none yet in this process. And whether it runs.
    timer: i32,
    is_armed: bool,
    /// When the last commit was settled, and when the timer was set.
    settled_ns: u64,
    armed_ns: u64,
    /// What the store said when it was opened.
    pub power_lost: bool,
}

impl Lag {
    pub const fn new() -> Lag {
        Lag {
            files: [NOTHING; MOST],
            count: 0,
            committed: [UNKNOWN; MOST],
            settled: [UNKNOWN; MOST],
            dirty: false,
            must: false,
            timer: 0,
            is_armed: false,
            settled_ns: 0,
            armed_ns: 0,
            power_lost: false,
        }
    }

    fn find(&self, file: &Identity) -> Option<usize> {
        self.files[..self.count].iter().position(|known| known.file == *file)
    }

    fn remove(&mut self, n: usize) {
        self.count -= 1;
        for of in [&mut self.committed, &mut self.settled] {
            of[n] = of[self.count];
        }
        self.files[n] = self.files[self.count];
        self.dirty = true;
    }

    /// The file has so many bytes.
    fn note(&mut self, look: &Look, is_alone: impl FnOnce() -> bool) -> usize {
        let n = self.find(&look.identity).unwrap_or_else(|| {
            if self.count == MOST {
                self.remove(0);
            }
            let n = self.count;
            self.files[n] = Growing { file: look.identity, size: UNKNOWN, is_alone: is_alone().into() };
            (self.committed[n], self.settled[n]) = (UNKNOWN, UNKNOWN);
            self.count += 1;
            n
        });
        self.dirty |= self.files[n].size != look.size;
        self.files[n].size = look.size;
        n
    }
}

/// May commits lag?
#[inline]
pub fn is_on(e: &Engine) -> bool {
    e.args.lag_ns != 0 && e.args.options & option::DURABLE != 0
}

/// Finds out whether a settled commit must stand before the call, which is about to be served.
pub fn before(e: &mut Engine, call: &Call) {
    if is_on(e) {
        note_closing(e, call);
        e.lag.must = must_settle(e, call);
    }
}

/// The call is served.
pub fn after(e: &mut Engine) {
    e.lag.must = false;
    if is_on(e) && !e.unsynced.is_empty() {
        arm(e);
    }
}

fn must_settle(e: &mut Engine, call: &Call) -> bool {
    let class = row(call.nr).map_or(Class::Unknown, |row| row.class);
    let makes_safe = matches!(call.nr, FSYNC | FDATASYNC | SYNC | MSYNC | SYNC_FILE_RANGE | SYNCFS);
    let leaves = matches!(class, Class::Exec | Class::Exit) && (call.nr != nr::EXIT || !crate::world::has_several());
    if makes_safe || leaves || undo::concerns_names(call) || undo::cut(call).is_some() || changes_attributes(call.nr) {
        return true;
    }
    match undo::target(call) {
        Some(fd) if matches!(e.fds.kind(fd), kind::REGULAR | kind::BLOCK) => !grows(e, call, fd),
        _ => false,
    }
}

/// The file was changed.
pub fn written(e: &mut Engine, fd: i32) {
    if is_on(e) && e.lag.count > 0 {
        if let Ok(look) = undo::look_at(fd) {
            if e.lag.find(&look.identity).is_some() {
                e.lag.note(&look, || false);
            }
        }
    }
}

/// Is all that the call changes of the file behind its end as of the settled commit?
fn grows(e: &mut Engine, call: &Call, fd: i32) -> bool {
    let Ok(look) = undo::look_at(fd) else { return false };
    let n = e.lag.note(&look, || false);
    if e.lag.settled[n] == UNKNOWN {
        e.lag.files[n].is_alone = undo::is_alone(e, fd, &look.identity).into();
        return false;
    }
    let writes = matches!(call.nr, nr::WRITE | nr::WRITEV | nr::PWRITE64 | nr::PWRITEV | nr::PWRITEV2);
    let is_lazy = undo::flags_of(fd) & O_DSYNC == 0 && (call.nr != nr::PWRITEV2 || call.args[5] == 0);
    let from = if write_file::appends(call) { look.size } else { undo::change(call, fd, look.size).from };
    writes && is_lazy && look.is_regular() && from >= e.lag.settled[n]
}

/// What is closed is not to be synced by its number any more; and if it is opened again, its size is not known to be settled.
fn note_closing(e: &mut Engine, call: &Call) {
    let (first, last) = match call.nr {
        nr::CLOSE => (call.args[0] as u32, call.args[0] as u32),
        nr::DUP2 | nr::DUP3 => (call.args[1] as u32, call.args[1] as u32),
        nr::CLOSE_RANGE => (call.args[0] as u32, call.args[1] as u32),
        _ => return,
    };
    e.unsynced.closing(first, last);
    if e.lag.count > 0 {
        for n in (0..e.lag.count).rev() {
            let is_it = |fd: i32| undo::look_at(fd).is_ok_and(|look| look.identity == e.lag.files[n].file);
            let closes = match first == last {
                true => is_it(first as i32),
                false => true,
            };
            if closes {
                e.lag.remove(n);
            }
        }
    }
}

/// Must the commit that is made settle?
#[inline]
pub fn settles(e: &Engine) -> bool {
    !is_on(e)
        || e.lag.must
        || e.store.as_ref().is_some_and(|store| store.seq() == store.params().base_seq || store.wants_fold())
}

/// Puts the files' sizes into the commit.
pub fn save(e: &mut Engine) {
    if e.lag.dirty {
        if let Some(store) = &mut e.store {
            store.put(object::GROWING, 0, bytemuck::cast_slice(&e.lag.files[..e.lag.count]));
            e.lag.dirty = false;
        }
    }
}

/// A commit was published.
pub fn committed(e: &mut Engine) {
    if !is_on(e) {
        return;
    }
    for n in 0..e.lag.count {
        e.lag.committed[n] = e.lag.files[n].size;
    }
    if e.store().settled() == e.store().seq() {
        settled(e);
    } else {
        arm(e);
    }
}

/// The last commit is on the medium.
fn settled(e: &mut Engine) {
    e.lag.settled = e.lag.committed;
    e.lag.settled_ns = now_ns();
    if core::mem::take(&mut e.lag.is_armed) {
        periodic::set(e.lag.timer - 1, 0, 0);
    }
}

fn arm(e: &mut Engine) {
    if e.lag.is_armed {
        return;
    }
    // What is late is knocked for again: a knock in the middle of a restartable sequence comes to nothing.
    let (first, then) = (e.args.lag_ns / 4 * 3, e.args.lag_ns / 8 + 1);
    if e.lag.timer == 0 {
        match periodic::knock_at_all(CLOCK_MONOTONIC, first, then) {
            Some(id) => e.lag.timer = id + 1,
            None => return degrade(Degradation::EngineError),
        }
    } else {
        periodic::set(e.lag.timer - 1, first, then);
    }
    (e.lag.is_armed, e.lag.armed_ns) = (true, now_ns());
}

/// The timer knocks no more.
pub fn stop(e: &mut Engine) {
    if core::mem::take(&mut e.lag.is_armed) {
        periodic::set(e.lag.timer - 1, 0, 0);
    }
}

/// Brings the last commit, and all that was written to files, onto the medium.
pub fn settle(e: &mut Engine) {
    e.unsynced.sync();
    let Some(store) = &mut e.store else { return };
    match store.settle() {
        Ok(()) => settled(e),
        Err(_) => degrade(Degradation::EngineError),
    }
}

/// Was this knock the lag's timer?
pub fn is_due(e: &Engine) -> bool {
    is_on(e) && e.lag.is_armed && now_ns() - e.lag.armed_ns >= e.args.lag_ns / 4 * 3
}

/// The thread is about to wait: what is settled now need not cut the wait short.
pub fn before_waiting(e: &mut Engine) {
    if e.lag.is_armed && now_ns() - e.lag.settled_ns >= e.args.lag_ns / 2 {
        settle(e);
    }
}

/// What a dead predecessor has in memory only is brought onto the medium before its store is opened, which settles its last commit.
pub fn before_opening(e: &Engine) {
    if is_on(e) {
        // SAFETY: has no arguments.
        unsafe { syscall!(SYNC) };
    }
}

/// Reads back what the commit says of files; after a loss of power they are cut off where they ended then.
pub fn restore(e: &mut Engine, is_same_process: bool) {
    if !is_on(e) {
        return;
    }
    if !is_same_process {
        (e.lag.timer, e.lag.is_armed) = (0, false);
    }
    let buf = crate::scratch::object_buffer();
    let n = e.store().object(object::GROWING, 0, buf).unwrap_or(0).min(MOST * size_of::<Growing>());
    e.lag.count = 0;
    for bytes in buf[..n].chunks_exact(size_of::<Growing>()) {
        e.lag.files[e.lag.count] = bytemuck::pod_read_unaligned(bytes);
        e.lag.count += 1;
    }
    for n in 0..e.lag.count {
        (e.lag.committed[n], e.lag.settled[n]) = (e.lag.files[n].size, e.lag.files[n].size);
    }
    (e.lag.dirty, e.lag.must) = (false, false);
    undo::load_shared(e);
    if core::mem::take(&mut e.lag.power_lost) {
        cut_off(e);
        // Their devices may have other numbers now.
        (e.lag.count, e.lag.dirty) = (0, true);
    }
}

fn cut_off(e: &mut Engine) {
    let files = &e.lag.files[..e.lag.count];
    for_each_open(|fd| {
        let Ok(look) = undo::look_at(fd) else { return };
        let grown = |known: &&Growing| {
            known.is_alone != 0 && known.size < look.size && known.file.is_same_inode(&look.identity)
        };
        if let Some(known) = files.iter().find(grown) {
            // SAFETY: cuts off what the program wrote to its own file, and nobody has been told that it is safe.
            unsafe { syscall!(nr::FTRUNCATE, fd, known.size) };
        }
    });
}
