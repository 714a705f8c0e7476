//! The control page: the mailbox between engine, anchor and supervisor. Volatile: recovery trusts nothing in it.

use crate::durations::Durations;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicU8};

/// Values of [`Control::state`].
pub mod state {
    /// The engine has not yet taken its first commit.
    pub const STARTING: u32 = 0;
    /// Protected.
    pub const PROTECTED: u32 = 1;
    /// Running without protection; [`super::Control::degradations`] says why.
    pub const SUSPENDED: u32 = 2;
    /// The program called exit; a death from now on is its end.
    pub const EXITING: u32 = 3;
    /// Retries are used up; the next death is the program's end.
    pub const GIVEN_UP: u32 = 4;
    /// The program is being replaced by execve.
    pub const EXECING: u32 = 5;
    /// Names in the order of the values.
    pub const NAMES: [&str; 6] = ["starting", "protected", "suspended", "exiting", "given-up", "exec"];
}

/// Requests to the engine. Bits of [`Control::request`]; acknowledged by clearing the bit.
pub mod request {
    /// Take a commit at the next point.
    pub const COMMIT: u32 = 1;
    /// Make a new anchor.
    pub const ANCHOR: u32 = 2;
    /// Leave the program to the kernel. Acknowledged with the state as it was where that cannot be.
    pub const DETACH: u32 = 4;
}

/// Commands to the anchor. Values of [`Control::anchor_command`].
pub mod anchor_command {
    pub const NONE: u32 = 0;
    /// Clone a process that restores the program; its pid shall be [`super::Control::wanted_pid`] if not 0.
    pub const RESPAWN: u32 = 1;
    /// End.
    pub const EXIT: u32 = 2;
    /// Anchor: RESPAWN was taken up, and is not yet answered.
    pub const BUSY: u32 = 3;
}

/// How a change of credentials is made known to the supervisor, who must never resume the program with more than it had.
/// Values of [`Control::credential_request`].
pub mod credential_request {
    pub const NONE: u32 = 0;
    /// Engine: a change of user, group, capabilities, no_new_privs or seccomp filters is about to be made.
    pub const ASKED: u32 = 1;
    /// Supervisor: noted; the engine may go on with the change.
    pub const NOTED: u32 = 2;
    /// Engine: the change was made, or failed; the supervisor asks the kernel what the program has now.
    pub const CHANGED: u32 = 3;
}

/// Why a restore cannot read the store. Values of [`Control::unreadable`]; 0 while that is not so.
pub mod unreadable {
    /// It is no store.
    pub const FOREIGN: u32 = 1;
    /// A newer version wrote it.
    pub const NEWER: u32 = 2;
    /// It was made for another page size.
    pub const PAGE_SIZE: u32 = 3;
    /// Its checks fail, or it lacks what every commit has.
    pub const DAMAGED: u32 = 4;
    /// The file was cut off.
    pub const TOO_SHORT: u32 = 5;
    /// Its index does not fit into the engine's memory.
    pub const INDEX: u32 = 6;
    /// The medium refused a sync.
    pub const SYNC: u32 = 7;
    /// A thread was in the middle of the vDSO of another kernel.
    pub const KERNEL: u32 = 8;
    /// A file that the program maps is not there any more, or is another one; [`super::Control::lost_file`] names it.
    pub const FILE: u32 = 9;
    /// It was the store of a child that had just been born, and whose memory it did not have yet.
    pub const BARE: u32 = 10;
}

/// Whether a supervisor watches. Values of [`Control::supervisor`], as the kernel defines them for robust futexes; all else
/// is the supervisor's thread id, with [`WAITERS`].
///
/// [`WAITERS`]: supervisor::WAITERS
pub mod supervisor {
    /// The kernel is to wake whoever sleeps on the word when it writes [`DIED`].
    pub const WAITERS: u32 = 1 << 31;
    /// The kernel: the supervisor died.
    pub const DIED: u32 = 1 << 30;
}

/// Whether the store holds another state than the one that the dead process committed last. Values of [`Control::other_state`].
pub mod other_state {
    pub const NONE: u32 = 0;
    /// An older generation.
    pub const OLDER: u32 = 1;
    /// That of another program, of which this one is a copy: its standard streams are those that it was given.
    pub const COPY: u32 = 2;
    /// The same, but a cold resume is not done with opening its files: an anchor has what there is by now.
    pub const UNOPENED: u32 = 3;
    /// That of its parent, at the commit before the fork: it is the child, whose descriptors are its own.
    pub const CHILD: u32 = 4;
    /// None: it has its parent's memory until it has become another program, which begins with a session of its own.
    pub const SPAWNED: u32 = 5;
}

/// An execve, and the supervisor's part in it. Values of [`Control::exec_request`].
pub mod exec_request {
    pub const NONE: u32 = 0;
    /// Engine: it is about to be made, and waits for [`super::Control::exec_ready`].
    pub const EXEC: u32 = 1;
    /// Engine: it has failed.
    pub const FAILED: u32 = 2;
}

/// The answer to it: the supervisor's, or the engine's own if it has waited for too long. Values of [`Control::exec_ready`].
pub mod exec_answer {
    pub const NONE: u32 = 0;
    /// The program is traced: the execve may be made, and the new image gets [`super::Control::exec_mask`].
    pub const TRACED: u32 = 1;
    /// It could not be traced: after its execve it runs without protection.
    pub const UNTRACED: u32 = 2;
}

/// What is different for a program that meets the same failure from older generations, too. Bits of [`Control::perturbation`].
pub mod perturbation {
    /// Room around new private mappings, which may be written to.
    pub const ROOM: u32 = 1;
    /// Calls, and the signals and threads that come between them, are delayed now and then.
    pub const DELAYS: u32 = 2;
}

/// A wish to go back to an older generation. Values of [`Control::go_back`].
pub mod go_back {
    pub const NONE: u32 = 0;
    /// Command: being written down.
    pub const TAKEN: u32 = 1;
    /// Command: the supervisor may read it.
    pub const ASKED: u32 = 2;
}

/// What became of a wish to go back. Values of [`Control::went_back`].
pub mod went_back {
    /// The program is in that state.
    pub const DONE: u32 = 0;
    /// That generation is not kept any more.
    pub const MISSING: u32 = 1;
    /// It is damaged; the program runs on as if nobody had asked.
    pub const DAMAGED: u32 = 2;
    /// The program is not protected, or is just becoming another one.
    pub const NOT_NOW: u32 = 3;
    /// The program could not be brought back; the log says why.
    pub const FAILED: u32 = 4;
    /// The archive cannot be opened, for lack of its key above all; the log says why.
    pub const NO_KEY: u32 = 5;
}

/// Shared by the program, its anchor and the supervisor. At most one page.
#[repr(C, align(64))]
pub struct Control {
    /// [`MAGIC`]: written by the supervisor.
    pub magic: AtomicU64,
    /// Engine: one of [`state`].
    pub state: AtomicU32,
    /// Engine: one of [`crate::event::phase`].
    pub phase: AtomicU32,
    /// Engine: bits of [`crate::degradation::Degradation`].
    pub degradations: AtomicU64,
    /// Real process id of the program as its supervisor sees it.
    pub program_pid: AtomicI32,
    /// Real process id of the anchor; 0 while there is none.
    pub anchor_pid: AtomicI32,
    /// Supervisor, then engine: bits of [`request`]. A futex.
    pub request: AtomicU32,
    /// Engine: counts up when a request was served, and when there is another anchor. A futex.
    pub served: AtomicU32,

    /// Supervisor, then anchor: one of [`anchor_command`]. A futex.
    pub anchor_command: AtomicU32,
    /// Anchor: 1 when the command was carried out. A futex.
    pub anchor_done: AtomicU32,
    /// Supervisor: process id to be taken by the respawned process; 0 for any.
    pub wanted_pid: AtomicI32,
    /// Anchor, and the new process itself: its id, or a negative error number; 0 until then.
    pub new_pid: AtomicI32,
    /// Supervisor: process group of the program.
    pub pgid: AtomicI32,

    /// Engine: 1 asks the supervisor to seize it for an execve. A futex.
    pub exec_request: AtomicU32,
    /// Supervisor: one of [`exec_answer`]. A futex.
    pub exec_ready: AtomicU32,
    /// Supervisor: 1 when the program must not be recovered from the next death (`outlast stop`). Engine: while the program kills itself.
    pub stopping: AtomicU32,

    /// Engine: statistics.
    pub commits: AtomicU64,
    pub dirty_pages: AtomicU64,
    pub folds: AtomicU64,
    pub gate_calls: AtomicU64,
    pub trapped_calls: AtomicU64,
    pub rewritten_sites: AtomicU64,
    pub unknown_calls: AtomicU64,
    pub scans: AtomicU64,
    /// How often a commit has read the whole map of the process.
    pub maps_read: AtomicU64,
    /// Engine: how often all threads but one were stopped, the ticks of the time stamp counter that this took, and how many
    /// threads had to be knocked at.
    pub stops: AtomicU64,
    pub stop_ticks: AtomicU64,
    pub knocks: AtomicU64,
    /// Engine: outputs that one thread made for another.
    pub joined: AtomicU64,
    /// Engine: bytes that commits have written to the store, and the most that one of them has since somebody wrote 0 here.
    pub log_bytes: AtomicU64,
    pub log_largest: AtomicU64,
    /// Engine: time stamp counter at the last commit.
    pub last_commit_tsc: AtomicU64,
    /// Engine: sequence number of the last commit.
    pub last_seq: AtomicU64,
    /// Engine: rollbacks in place.
    pub rollbacks: AtomicU64,

    /// Supervisor: CLOCK_MONOTONIC when it learnt of the death. Engine: when restore had begun, mapped, and was done.
    pub t_death: AtomicU64,
    pub t_begin: AtomicU64,
    pub t_mapped: AtomicU64,
    pub t_resumed: AtomicU64,
    /// Engine: counts restores done; the supervisor waits for it. A futex.
    pub restored: AtomicU32,
    /// Engine: number of events ever written to the ring of events. A futex.
    pub events: AtomicU32,

    /// Engine: the fatal signal met last, its instruction, and how often in a row.
    pub fault_signal: AtomicU32,
    pub fault_repeats: AtomicU32,
    pub fault_rip: AtomicU64,
    pub fault_seq: AtomicU64,
    /// Engine: line and error number of an error of its own.
    pub error_line: AtomicU32,
    pub error_number: AtomicI32,
    /// Engine: one of [`unreadable`]. The supervisor clears it before it tries again.
    pub unreadable: AtomicU32,
    /// Engine: argument of exit_group, once `state` is EXITING.
    pub exit_code: AtomicI32,
    /// One of [`credential_request`]. A futex.
    pub credential_request: AtomicU32,
    /// Engine: the anchor that takes over once commit `next_anchor_seq` is published; 0 for none. The one in
    /// `anchor_pid` answers until then.
    pub next_anchor: AtomicI32,
    /// Engine: see `next_anchor`; 0 for none.
    pub next_anchor_seq: AtomicU64,
    /// Engine: the anchor that another one has just taken over from, until it has ended; 0 for none.
    pub past_anchor: AtomicI32,
    /// Supervisor, for the kernel: address of the next entry of its list of robust futexes.
    pub supervisor_entry: AtomicU64,
    /// See [`supervisor`]. A futex.
    pub supervisor: AtomicU32,
    /// Supervisor: how many of the events are in the log.
    pub events_logged: AtomicU32,
    /// Engine: how often it took signal `n`, counted before anything else is done about it; entry 0 is unused.
    pub taken: [AtomicU32; 32],
    /// Engine: signals, as a mask, that the program sent to itself and has not taken: it will send them again, or the
    /// engine will.
    pub sent: AtomicU64,
    /// Engine: signals, as a mask, that timers of the program make or made: they come again by themselves.
    pub timed: AtomicU64,
    /// Supervisor: signals, as a mask, that were pending when the program died, or came while it was dead. The engine sends
    /// them to the restored program and clears them.
    pub missed: AtomicU64,
    /// Engine: one of [`crate::fault_list::fault_source`].
    pub fault_source: AtomicU32,
    /// Kernel: process id of the child that the program's fork made. Engine: 0 before the commit that a fork waits for.
    pub birth: AtomicI32,
    /// 1 while files that the program removed have a hidden name, until the next commit; a futex.
    pub hides: AtomicU32,
    /// Engine: commits that were checked, and those that could not be since something was written meanwhile.
    pub checks: AtomicU64,
    pub checks_put_off: AtomicU64,
    /// Engine: id of the thread that is about to exec.
    pub exec_tid: AtomicI32,
    /// Engine: the signals that the program has blocked as it execs, bit n-1 for signal n; the kernel has all blocked then.
    pub exec_mask: AtomicU64,
    /// Supervisor, then engine: one of [`other_state`], until a process has been restored.
    pub other_state: AtomicU32,
    /// Whoever copies the store: CLOCK_MONOTONIC nanoseconds until when it is not to be folded, as far as there is room.
    pub no_fold_until: AtomicU64,
    /// A person's command, then supervisor: one of [`go_back`]. A futex.
    pub go_back: AtomicU32,
    /// Supervisor: what became of the last such wish: one of [`went_back`].
    pub went_back: AtomicU32,
    /// A person's command: the generation wanted.
    pub go_back_to: AtomicU64,
    /// Supervisor: bits of [`perturbation`].
    pub perturbation: AtomicU32,
    /// Engine: pages of room around mappings that it has made.
    pub room: AtomicU32,
    /// Engine: counts the lists of mapped files that it has written for the anchor. A futex.
    pub mapped_files: AtomicU32,
    /// Engine: the anchor that a process in between has just made, for its maker.
    pub newborn: AtomicI32,
    /// Engine: 1 once threads of a program that is attached to may come in.
    pub awaits_threads: AtomicU32,
    /// Supervisor: thousandths of going back that are done.
    pub progress: AtomicU32,
    /// Engine: where its threads' control blocks are, for who looks on from outside how far each has come.
    pub threads: ThreadBlocks,
    /// Engine: a path, ended by a zero if it is shorter, for [`unreadable::FILE`].
    pub lost_file: [AtomicU8; 512],
    /// Supervisor: counts how often it has changed how the engine is to protect the program: the words of
    /// [`crate::inject::InjectArgs`] that [`crate::inject::option::WAYS`] names.
    pub ways_wanted: AtomicU32,
    /// Engine: which of these changes it has seen to. A futex.
    pub ways_taken: AtomicU32,
    /// Engine: what commits took, from when all threads stood still until they were published.
    pub commit_durations: Durations,
    /// Engine: counts births of children. A futex.
    pub births: AtomicU32,
    /// Supervisor: counts what has become of children. A futex.
    pub children_news: AtomicU32,
    /// Engine: how many places of the table of children have ever been used.
    pub children_used: AtomicU32,
    /// The process id of its parent as the program knows it: another program of the tree. Its parent's engine at its birth, then the
    /// supervisor. 0: the kernel's.
    pub parent: AtomicI32,
    /// Engine: the process id by which the program was born, as a child; 0: it is none.
    pub born_as: AtomicI32,
    /// Engine: of a child that was just born, the commit whose memory its anchor has, and its store has not; 0: there is none.
    pub bare: AtomicU64,
    /// Engine, then supervisor: one of [`tree_request`]. A futex.
    pub tree_request: AtomicU32,
    /// Engine: what it wants to know or to have done: one of [`tree_request::kind`], and with which numbers.
    pub tree_wanted: AtomicU32,
    pub tree_about: [AtomicI32; 2],
    /// Supervisor: the answer.
    pub tree_answer: AtomicI32,
    /// Supervisor: the group in which its parent has put the program; 0 if it has gone into another one since. Engine: clears it.
    pub group_given: AtomicI32,
    /// Engine: the session that only the program knows it to be in; 0: it is in the one in which the kernel has it. Supervisor: for the image
    /// that it becomes.
    pub own_session: AtomicU32,
    /// Engine: counts signals that the program sends to others: SIGKILL before it does, all others afterwards. A futex.
    pub signals: AtomicU32,
    /// Supervisor: how many of them it has heard of. A futex.
    pub signals_heard: AtomicU32,
    /// Engine: the last of them, each at its number modulo their number; the next one is there before it is sent, and counted afterwards.
    pub signalled: [Signalled; SIGNALLED],
    /// Supervisor: not 0: the kernel knows a process of the tree by another number than the program does.
    pub numbers_differ: AtomicU32,
    /// Engine: when this process began, in CLOCK_MONOTONIC nanoseconds: signals that are sent to it from then on reach it. 0: nobody has died
    /// yet. Supervisor: [`u64::MAX`] while there is none.
    pub born_at: AtomicU64,
    /// Engine: what children have used whose status was taken and whose places in the table were used again.
    pub children_usage: [AtomicU64; crate::children::USAGE_WORDS],
    /// Engine: the signal that the program of a child is to get when its parent ends; 0: none.
    pub death_signal: AtomicU32,
    /// Engine: when it took signal `n` last, in CLOCK_MONOTONIC nanoseconds. Entry 0 is unused.
    pub taken_at: [AtomicU64; 32],
}

/// A signal that a program has sent to others.
#[repr(C)]
pub struct Signalled {
    /// To whom: `kill`'s first argument, but that its own group goes by its number.
    pub to: AtomicI32,
    pub signal: AtomicI32,
    /// CLOCK_MONOTONIC nanoseconds just before.
    pub at: AtomicU64,
    /// The commit that stands before it.
    pub seq: AtomicU64,
    /// Not 0: the kernel knew nobody by that number.
    pub met_nobody: AtomicU32,
}

/// How many of the signals that a program sends wait to be heard of.
pub const SIGNALLED: usize = 16;

/// What a process of a tree wants of the supervisor, which knows all others. Values of [`Control::tree_request`].
pub mod tree_request {
    pub const NONE: u32 = 0;
    /// Engine: it waits.
    pub const ASKED: u32 = 1;
    /// Supervisor: [`super::Control::tree_answer`] is there.
    pub const ANSWERED: u32 = 2;

    /// Values of [`super::Control::tree_wanted`].
    pub mod kind {
        /// A child is to be in another group: setpgid serves real parents only. Numbers: child, group. Answer: what setpgid said: 0, or the
        /// negative error number.
        pub const SET_GROUP: u32 = 1;
        /// By what number does the kernel know a process of the tree? Number: by which the program does. Answer: 0: there is none.
        pub const TO_KERNEL: u32 = 2;
        /// The other way round.
        pub const TO_PROGRAM: u32 = 3;
        /// Has anybody got the signal that a dead predecessor was about to send, the next of [`super::super::Control::signalled`]? Answer: 1: yes.
        pub const HAS_GOT: u32 = 4;
    }
}

/// Where the engine keeps what it knows of the program's threads. The first thread's block has an address of its own; those of others lie at the
/// beginnings of their places (see [`crate::layout::THREADS_BASE`]). All zero: there is nothing to be seen yet.
#[repr(C)]
pub struct ThreadBlocks {
    /// Address of the first thread's block.
    pub first: AtomicU64,
    /// Address of the places that are taken: one bit each, lowest first, in words of eight bytes.
    pub taken: AtomicU64,
    /// Offset in a block: how many calls the thread has made. Eight bytes.
    pub calls: AtomicU32,
    /// The same: the address to which its last call returns, or has returned. Eight bytes.
    pub site: AtomicU32,
    /// The same: what the kernel calls the thread. Four bytes.
    pub tid: AtomicU32,
    /// The same: what the program calls it. Four bytes.
    pub number: AtomicU32,
    /// Addresses of the program's own registries of code sections, as [`crate::sections`] has them; 0: none.
    pub sections: [AtomicU64; crate::sections::REGISTRIES],
}

/// First word of a control page.
pub const MAGIC: u64 = u64::from_le_bytes(*b"OUTLASTc");

const _: () = assert!(core::mem::size_of::<Control>() <= crate::layout::PAGE as usize);
