//! Everything the engine knows, in one place. Private memory: a restored process starts from the store instead.

use crate::aliased::Aliased;
use crate::descriptors::Descriptors;
use crate::inputs;
use crate::medium::Unsynced;
use crate::mutant::without;
use crate::noted::transfer::Transfer;
use crate::queued::Queue;
use crate::ring::Ring;
use crate::taking_part::TakingPart;
use crate::tracker::{Track, Tracker};
use outlast_image::inject::{option, InjectArgs};
pub use outlast_image::journal;
use outlast_image::kernel::{
    before_outputs, KernelState, Notification, PosixTimer, ProcessorTimer, ProgramRing, SignalAction, Undo,
};
use outlast_image::kernel::{NOTIFICATIONS, RINGS, SIGNALS, TIMERS, UNDOS};
use outlast_image::layout::{own_fd, session, SESSION_BASE};
use outlast_image::mutant::Mutant;
use outlast_store::{MappedRegion, Store};

/// Kinds of object in the store.
pub mod object {
    /// `KernelState`.
    pub const KERNEL: u16 = 2;
    /// Encoded regions; key: number of the piece.
    pub const REGIONS: u16 = 3;
    /// Bitmap of open descriptors.
    pub const DESCRIPTORS: u16 = 4;
    /// `Descriptor` and path; key: number.
    pub const DESCRIPTOR: u16 = 5;
    /// `auxv` and the rest of what a cold resume needs of the old image.
    pub const IMAGE: u16 = 6;
    /// Addresses of stub areas.
    pub const STUBS: u16 = 7;
    /// `struct siginfo` of signals that the program sent to itself, in their order.
    pub const QUEUE: u16 = 8;
    /// Path of the working directory.
    pub const DIRECTORY: u16 = 9;
    /// Bitmap of the threads' places that are taken. Without it there is the first thread alone.
    pub const THREADS: u16 = 10;
    /// Identities of files whose open descriptions others share.
    pub const SHARED: u16 = 11;
    /// What was to be seen before the call that a durable commit stands before: the commit's number, and what the witness looks at.
    pub const WITNESS: u16 = 16;
    /// Files that may have grown since a commit that lags, with their sizes.
    pub const GROWING: u16 = 18;
    /// The image of the vDSO that the program knows.
    pub const VDSO: u16 = 17;
    /// Input that a restored program had not taken again yet, in its order; key: number of the piece.
    pub const INPUT: u16 = 12;
    /// `TakingPart`.
    pub const TAKING_PART: u16 = 13;
    /// An interest of an epoll; key: its place in the table.
    pub const INTEREST: u16 = 14;
    /// A context of asynchronous input and output; key: its place in the table.
    pub const CONTEXT: u16 = 15;
    /// What is advised of which ranges of addresses.
    pub const ADVICE: u16 = 19;
    /// Outputs that are made, as the program sees it, and have not left.
    pub const GATHERED: u16 = 20;
    /// Userfaultfds of the program's, their ranges, and pages of zeroes there.
    pub const OWN_FAULTS: u16 = 21;
    /// What had been sent on a connection, of which a restored program has not sent all again; key: its number among them.
    pub const REPLY: u16 = 22;
    /// Connections that others have as well.
    pub const SHARED_CONNECTIONS: u16 = 23;
    /// `Held` and what an object without a name held; key: the descriptor.
    pub const HELD: u16 = 24;
    /// A watch of inotify; key: its place in the table.
    pub const WATCH: u16 = 25;
    /// Which ranges of addresses stay in RAM.
    pub const LOCKS: u16 = 26;
    /// `Retrace`.
    pub const RETRACE: u16 = 27;
    /// `OwnFile` and what the kernel calls it; key: its place.
    pub const OWN_FILE: u16 = 28;
}

/// Ranges whose content vanished since the last commit.
pub const DROPS: usize = 512;
/// Most ranges that one call makes vanish: mremap, both places.
const DROPS_OF_A_CALL: usize = 2;

/// A fatal signal.
pub struct Fault {
    pub signal: u32,
    /// What the kernel tells of it in `si_addr`.
    pub address: u64,
    /// CLOCK_MONOTONIC in nanoseconds when the engine met it.
    pub met_ns: u64,
}

/// The engine.
pub struct Engine {
    _aliased: Aliased,
    pub args: InjectArgs,
    pub store: Option<Store<'static, MappedRegion>>,
    pub tracker: Tracker,
    pub hot: crate::hot::HotSet,
    pub fds: Descriptors,
    pub undo: crate::undo::Undo,
    pub ring: Ring,
    pub transfer: Transfer,
    /// There is a context for [`crate::noted::completions`].
    pub has_completions: bool,
    /// What of the program's files may not be on the medium.
    pub unsynced: Unsynced,
    pub lag: crate::lag::Lag,
    /// Outputs that leave together.
    pub gathered: crate::gathered::Gathered,
    /// What a program that takes part has registered.
    pub part: TakingPart,
    pub kernel: KernelState,
    /// Signals that the program sent to itself.
    pub queue: Queue,
    /// Input that the program is to get again.
    pub inputs: inputs::Log,
    /// Input that was noted since the last commit.
    pub noted: inputs::Noted,
    pub replies: crate::replies::Replies,
    /// What the program had sent before it went back, and is not to send again.
    pub retrace: crate::retrace::Retrace,
    /// What the last commit stands before is known to be done, and will not be done again however much later.
    pub is_settled: bool,
    /// The last operation that was made, and its result.
    pub performed: (u64, i64),
    /// The kernel state changed since the last commit.
    pub kernel_dirty: bool,
    /// The working directory is not the one in the store.
    pub directory_dirty: bool,
    /// Contexts of asynchronous input and output are not those in the store.
    pub contexts_dirty: bool,
    /// What the program has advised of its memory.
    pub advice: crate::advice::Advice,
    /// Files that the program maps and has no descriptor of.
    pub held: crate::held_files::Held,
    pub own_files: crate::own_files::OwnFiles,
    /// What it maps that others of the tree map, too.
    pub shared_memory: crate::shared_memory::SharedMemory,
    /// Files that it maps, as the anchor knows.
    pub told_files: crate::kept_files::Told,
    /// Any regions may have changed since the last commit.
    pub maps_dirty: bool,
    /// Those that have, if that is known.
    pub map_changes: crate::changed_maps::Changes,
    pub drops: [(u64, u64); DROPS],
    pub drop_count: usize,
    /// Ranges mapped lazily over the store: clean pages there are still the store's.
    pub lazy: [(u64, u64); 256],
    pub lazy_count: usize,
    /// What a rollback answers.
    pub fault: Fault,
    /// Bytes of the store's ring that this process has written to before.
    pub ring_touched: u64,
    /// Places of the threads that the last commit told of.
    pub threads: [u64; crate::world::WORDS],
    /// There are fewer of them than the last commit told of, though never was more than one.
    pub sheds_threads: bool,
    /// The periodic timer, as its id plus one; 0: none yet in this process.
    pub timer: i32,
    /// What it is set to. Nanoseconds.
    pub interval: u64,
    /// What stands before outputs has changed, and was not committed since.
    pub ways_are_open: bool,
    store_path: [u8; 512],
    store_path_len: usize,
}

/// The first thread alone.
pub const ONE_THREAD: [u64; crate::world::WORDS] = {
    let mut places = [0; crate::world::WORDS];
    places[0] = 1;
    places
};

const NO_ACTION: SignalAction = SignalAction { handler: 0, flags: 0, restorer: 0, mask: 0 };

// SAFETY of zeroed parts: plain integers.
pub static mut ENGINE: Engine = Engine {
    _aliased: Aliased::new(),
    args: unsafe { core::mem::zeroed() },
    store: None,
    tracker: Tracker::new(),
    hot: crate::hot::HotSet::new(),
    fds: Descriptors::new(),
    undo: crate::undo::Undo::new(),
    ring: Ring::none(),
    transfer: Transfer::new(),
    has_completions: false,
    unsynced: Unsynced::new(),
    lag: crate::lag::Lag::new(),
    gathered: crate::gathered::Gathered::new(),
    part: TakingPart::NOTHING,
    kernel: KernelState {
        actions: [NO_ACTION; SIGNALS],
        brk: 0,
        start_brk: 0,
        pid: 0,
        pgid: 0,
        sid: 0,
        foreground: 0,
        vdso: [0; 3],
        mm: [0; 10],
        itimer: [0; 2],
        boot: 0,
        ahead: [0; 2],
        root: [0; 2],
        processor_timers: [ProcessorTimer::NONE; 2],
        timers: [PosixTimer::NONE; TIMERS],
        notifications: [Notification::NONE; NOTIFICATIONS],
        semaphores: [Undo::NONE; UNDOS],
        rings: [ProgramRing::NONE; RINGS],
        more_undos: 0,
        one_shot: 0,
        locks: 0,
        death_signal: 0,
        subreaper: 0,
        undumpable: 0,
        locking: 0,
        limits: [0; 2],
        own_pidfds: 0,
        owners: 0,
        before_outputs: before_outputs::UNKNOWN,
        barriers: 0,
        interests: 0,
        own_session: 0,
        umask: 0,
        window_fd: -1,
        window: [0; 4],
    },
    queue: Queue::new(),
    inputs: inputs::Log::new(),
    noted: inputs::Noted::new(),
    replies: crate::replies::Replies::new(),
    retrace: crate::retrace::Retrace::new(),
    is_settled: false,
    performed: (0, 0),
    kernel_dirty: false,
    directory_dirty: true,
    contexts_dirty: false,
    advice: crate::advice::Advice::new(),
    held: crate::held_files::Held::NONE,
    own_files: crate::own_files::OwnFiles::NONE,
    shared_memory: crate::shared_memory::SharedMemory::NONE,
    told_files: crate::kept_files::Told::NOTHING,
    maps_dirty: false,
    map_changes: crate::changed_maps::Changes::NONE,
    drops: [(0, 0); DROPS],
    drop_count: 0,
    lazy: [(0, 0); 256],
    lazy_count: 0,
    fault: Fault { signal: 0, address: 0, met_ns: 0 },
    ring_touched: 0,
    threads: ONE_THREAD,
    sheds_threads: false,
    timer: 0,
    interval: 0,
    ways_are_open: false,
    store_path: [0; 512],
    store_path_len: 0,
};

/// The engine of this process.
///
/// # Safety
/// One thread, not re-entered: a handler that interrupts the engine defers and does not call this.
#[inline(always)]
pub unsafe fn engine() -> &'static mut Engine {
    let this = &raw mut ENGINE;
    &mut *this
}

/// Name of the store's file as /proc/self/maps shows it.
pub fn store_path() -> &'static [u8] {
    // SAFETY: written once at start or restore.
    unsafe {
        let e = engine();
        &e.store_path[..e.store_path_len]
    }
}

impl Engine {
    /// Takes the supervisor's arguments from the session.
    pub fn load_args(&mut self) {
        // SAFETY: the session is mapped and the arguments are plain integers.
        self.args = unsafe { ((SESSION_BASE + session::INJECT) as *const InjectArgs).read_volatile() };
        self.fds.own = self.args.session_fd;
        crate::proc::find(self);
        self.read_store_path();
    }

    /// Takes from there what may change while the program runs.
    pub fn load_ways(&mut self) {
        let args = (SESSION_BASE + session::INJECT) as *const InjectArgs;
        // SAFETY: the session is mapped, and these are integers; whoever writes them counts that afterwards.
        let (options, interval_ns, retries) = unsafe {
            (
                (&raw const (*args).options).read_volatile(),
                (&raw const (*args).interval_ns).read_volatile(),
                (&raw const (*args).retries).read_volatile(),
            )
        };
        self.args.options = self.args.options & !option::WAYS | options & option::WAYS;
        (self.args.interval_ns, self.args.retries) = (interval_ns, retries);
    }

    fn read_store_path(&mut self) {
        self.store_path_len = crate::proc::link(self.own_fd(OwnFd::Store), &mut self.store_path).len();
        let path = &self.store_path[..self.store_path_len];
        if let Some(p) = path.strip_suffix(b" (deleted)") {
            self.store_path_len = p.len();
        }
    }

    /// Number of the engine's descriptor for `use_`.
    pub fn own_fd(&self, use_: OwnFd) -> i32 {
        self.fds.own + use_ as i32
    }

    /// Closes the engine's descriptor for `use_`, if it is open.
    pub fn close_own(&self, use_: OwnFd) {
        // SAFETY: the number is the engine's.
        unsafe { crate::sys::syscall!(crate::sys::nr::CLOSE, self.own_fd(use_)) };
    }

    /// The store, which exists from start or restore on.
    pub fn store(&mut self) -> &mut Store<'static, MappedRegion> {
        match &mut self.store {
            Some(s) => s,
            None => crate::control::fail!(0),
        }
    }

    /// No page of `start..end` is hot any more; those that were are reported as written.
    pub fn cool(&mut self, start: u64, end: u64) {
        self.close_spans(start, end);
        let tracker = &mut self.tracker;
        self.hot.forget(start, end, |page| tracker.written(page));
    }

    /// No page of the range lies in an open span any more.
    fn close_spans(&mut self, start: u64, end: u64) {
        let tracker = &mut self.tracker;
        self.hot.spans.close(start, end, |from, to| (from..to).step_by(4096).for_each(|page| tracker.written(page)));
    }

    /// The same for pages whose content was just committed.
    pub fn arm_hot(&mut self, start: u64, end: u64) {
        self.close_spans(start, end);
        let tracker = &mut self.tracker;
        self.hot.forget(start, end, |page| tracker.arm(page, page + 4096));
    }

    /// Is there room for what one more call may drop? A commit makes room.
    pub fn may_drop(&self) -> bool {
        self.drop_count + DROPS_OF_A_CALL <= DROPS
    }

    /// The content of `start..end` is gone: it must not come back from the store.
    pub fn drop_range(&mut self, start: u64, end: u64) {
        let end = (end + 4095) & !4095;
        self.close_spans(start, end);
        self.hot.forget(start, end, |_| ());
        if without(Mutant::Drop) {
            return;
        }
        if self.drop_count > 0 && self.drops[self.drop_count - 1].1 == start {
            self.drops[self.drop_count - 1].1 = end;
            return;
        }
        if self.drop_count == DROPS {
            crate::control::fail!(0);
        }
        self.drops[self.drop_count] = (start, end);
        self.drop_count += 1;
    }
}

/// The engine's own descriptors, as offsets from the first. The supervisor provides the first of them.
#[derive(Clone, Copy)]
#[repr(i32)]
pub enum OwnFd {
    Session = own_fd::SESSION,
    Store = own_fd::STORE,
    FaultList = own_fd::FAULT_LIST,
    /// Whence sessions and stores for children come.
    Children = own_fd::CHILDREN,
    /// What processes of a tree know of each other's writes.
    Group = own_fd::GROUP,
    /// A /proc of the engine's own, where the program's root has none.
    Proc = own_fd::PROC,
    Ring = own_fd::PROVIDED,
    Userfault,
    Pagemap,
    FaultSamples,
    TransferRead,
    TransferWrite,
    /// A pipe that keeps the pages of completions.
    CompletionsRead,
    CompletionsWrite,
    /// Files that the program maps and has no descriptor of; more follow.
    Held = outlast_image::layout::own_fd::HELD,
    /// Given up for a moment when the engine needs a number and there is no other.
    Spare = outlast_image::layout::own_fd::HELD - 1,
}

const _: () = assert!((OwnFd::CompletionsWrite as i32) < OwnFd::Spare as i32);
