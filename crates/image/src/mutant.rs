//! Mechanisms that a mutation run switches off, one at a time: the tests must notice each.
//!
//! Only an engine built with the feature `mutants` looks at them. The released one has no such branch.

/// One mechanism of the engine. Its number is that of its bit in [`crate::inject::InjectArgs::mutants`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mutant {
    /// Output waits for a commit.
    OutputCommit,
    /// Input waits for a commit.
    InputCommit,
    /// Input that was noted since the commit is served again.
    InputLog,
    /// poll, select and epoll know of it.
    Readiness,
    /// The completions of a dead process's ring are searched.
    CompletionLookup,
    /// A result found there is kept for the case that the finder dies, too.
    KeptResult,
    /// The notes of calls made without io_uring are read.
    NoteLookup,
    /// What earlier parts of a long output transferred is remembered.
    Progress,
    /// An append that happened is told by the file's size.
    AppendWitness,
    /// Offsets of files are set back.
    OffsetUndo,
    /// Contents and sizes of files are set back.
    ContentUndo,
    /// Names of files are set back.
    NameUndo,
    /// Closed descriptors come back.
    CloseUndo,
    /// A close takes effect only with the next commit.
    DelayedClose,
    /// Flags of descriptors are set back.
    FlagsUndo,
    /// Descriptors that the commit does not know are closed.
    ExtraDescriptors,
    /// Edges of an epoll that the dead took are reported again.
    EpollRearm,
    /// Interests of epoll that report once are armed as they were at the commit.
    OneShot,
    /// Vector registers come back.
    VectorState,
    /// Signals that the program sent itself and still blocks are pending again.
    PendingSignals,
    /// A signal that meets the engine is delivered on the way out.
    SignalDeferral,
    /// A fatal signal becomes a rollback.
    Rollback,
    /// Interval timers are set again.
    Timer,
    /// The process group is the program's.
    ProcessGroup,
    /// Pages written again are saved.
    DirtyPage,
    /// Every fault on the list is looked at.
    ListedFault,
    /// Changed lines of hot pages are saved.
    HotPage,
    /// What was unmapped or discarded does not come back.
    Drop,
    /// Changes of the address space are saved.
    Regions,
    /// What is discarded in a lazily restored region reads as zero.
    LazyDiscard,
    /// Armed pages are made writable before the kernel writes there.
    KernelWrites,
    /// What the kernel writes for calls that wait stays writable while other threads commit.
    KeptOpen,
    /// A child that the kernel noted is not made again.
    Birth,
    /// A commit holds where all threads stand.
    ThreadContexts,
    /// A commit finds all threads standing still.
    ThreadStop,
    /// The thread that made a commit finishes its call before another one commits.
    ThreadTurn,
    /// What became of calls that another thread made is looked for.
    JoinedLookup,
    /// Signals that one thread sent to another are pending again.
    ThreadSignals,
    /// The program's function after a recovery is called.
    AfterRecovery,
    /// Calls name processes and threads by the kernel's numbers.
    Numbers,
    /// A new thread's id stands where its maker wants it before the thread begins.
    ThreadId,
    /// What was advised of memory is advised again.
    Advice,
    /// Spans that stay writable are saved.
    OpenSpan,
    /// pidfds of the program itself are opened again.
    OwnPidfds,
    /// A recovered process owns the files of the dead one.
    Owners,
    /// What membarrier has registered is registered again.
    Barriers,
    /// The program's own filters are asked about its calls.
    CallFilters,
    /// And about the engine's, before they are installed.
    FilterNeeds,
    /// They are handed over by an execve.
    HandedFilters,
    /// A recovered process is told of messages as the dead one would have been.
    Notifications,
    /// An epoll that watches a pidfd of the program itself watches the one opened again.
    WatchedPidfds,
    /// What a call reads tells that it was made.
    Entered,
    /// What was made of a kind that has no name is found again.
    HalfMade,
    /// What was undone of semaphores when all had died is done again.
    SemaphoreUndo,
    /// What is gathered goes into the commit.
    Gathered,
    /// What has come for a forking parent is none of its child's.
    ForkedKnocks,
    /// The program's userfaultfds are made anew.
    OwnFaults,
    /// Pages of zeroes that it has brought are there again.
    BroughtZeroes,
    /// Pages that it protects against writing are protected again.
    OwnProtection,
    /// Where it does, what is written is found by comparing.
    Compared,
    /// Threads have the bases of GS that they had.
    OwnBases,
    /// What a clone inherits is what the program has changed it to.
    Heir,
    /// A change that is refused the second time is made once.
    Once,
    /// What was replied before a death is not sent again.
    Replies,
    /// Requests come again in step with the replies.
    ReplyOrder,
    /// Files without a name that are the program's own go back to the commit.
    OwnFiles,
    /// What calls change of them is committed.
    CalledChanges,
    /// What was written where something is unmapped is committed.
    UnmappedChanges,
    /// They are made anew when everything has died.
    OwnFilesAnew,
    /// They are the program's own no more when somebody else may have them.
    LentFiles,
    /// What was written to a file through a mapping goes back with the program.
    MappedWrites,
}

impl Mutant {
    /// Every mechanism and its name on the command line, in the order of the bits.
    pub const ALL: &'static [(Mutant, &'static str)] = &[
        (Mutant::OutputCommit, "output-commit"),
        (Mutant::InputCommit, "input-commit"),
        (Mutant::InputLog, "input-log"),
        (Mutant::Readiness, "readiness"),
        (Mutant::CompletionLookup, "completion-lookup"),
        (Mutant::KeptResult, "kept-result"),
        (Mutant::NoteLookup, "note-lookup"),
        (Mutant::Progress, "progress"),
        (Mutant::AppendWitness, "append-witness"),
        (Mutant::OffsetUndo, "offset-undo"),
        (Mutant::ContentUndo, "content-undo"),
        (Mutant::NameUndo, "name-undo"),
        (Mutant::CloseUndo, "close-undo"),
        (Mutant::DelayedClose, "delayed-close"),
        (Mutant::FlagsUndo, "flags-undo"),
        (Mutant::ExtraDescriptors, "extra-descriptors"),
        (Mutant::EpollRearm, "epoll-rearm"),
        (Mutant::OneShot, "one-shot"),
        (Mutant::VectorState, "vector-state"),
        (Mutant::PendingSignals, "pending-signals"),
        (Mutant::SignalDeferral, "signal-deferral"),
        (Mutant::Rollback, "rollback"),
        (Mutant::Timer, "timer"),
        (Mutant::ProcessGroup, "process-group"),
        (Mutant::DirtyPage, "dirty-page"),
        (Mutant::ListedFault, "listed-fault"),
        (Mutant::HotPage, "hot-page"),
        (Mutant::Drop, "drop"),
        (Mutant::Regions, "regions"),
        (Mutant::LazyDiscard, "lazy-discard"),
        (Mutant::KernelWrites, "kernel-writes"),
        (Mutant::KeptOpen, "kept-open"),
        (Mutant::Birth, "birth"),
        (Mutant::ThreadContexts, "thread-contexts"),
        (Mutant::ThreadStop, "thread-stop"),
        (Mutant::ThreadTurn, "thread-turn"),
        (Mutant::JoinedLookup, "joined-lookup"),
        (Mutant::ThreadSignals, "thread-signals"),
        (Mutant::AfterRecovery, "after-recovery"),
        (Mutant::Numbers, "numbers"),
        (Mutant::ThreadId, "thread-id"),
        (Mutant::Advice, "advice"),
        (Mutant::OpenSpan, "open-span"),
        (Mutant::OwnPidfds, "own-pidfds"),
        (Mutant::Owners, "owners"),
        (Mutant::Barriers, "barriers"),
        (Mutant::CallFilters, "call-filters"),
        (Mutant::FilterNeeds, "filter-needs"),
        (Mutant::HandedFilters, "handed-filters"),
        (Mutant::Notifications, "notifications"),
        (Mutant::WatchedPidfds, "watched-pidfds"),
        (Mutant::Entered, "entered"),
        (Mutant::HalfMade, "half-made"),
        (Mutant::SemaphoreUndo, "semaphore-undo"),
        (Mutant::Gathered, "gathered"),
        (Mutant::ForkedKnocks, "forked-knocks"),
        (Mutant::OwnFaults, "own-faults"),
        (Mutant::BroughtZeroes, "brought-zeroes"),
        (Mutant::OwnProtection, "own-protection"),
        (Mutant::Compared, "compared"),
        (Mutant::OwnBases, "own-bases"),
        (Mutant::Heir, "heir"),
        (Mutant::Once, "once"),
        (Mutant::Replies, "replies"),
        (Mutant::ReplyOrder, "reply-order"),
        (Mutant::OwnFiles, "own-files"),
        (Mutant::CalledChanges, "called-changes"),
        (Mutant::UnmappedChanges, "unmapped-changes"),
        (Mutant::OwnFilesAnew, "own-files-anew"),
        (Mutant::LentFiles, "lent-files"),
        (Mutant::MappedWrites, "mapped-writes"),
    ];

    pub const fn bit(self) -> u128 {
        1 << self as u32
    }

    /// Whether it is among these bits, as an engine is told of them: the lower half comes first.
    pub const fn is_in(self, [low, high]: [u64; 2]) -> bool {
        (low as u128 | (high as u128) << 64) & self.bit() != 0
    }

    /// The mechanism called `name`.
    pub fn named(name: &str) -> Option<Mutant> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(mutant, _)| *mutant)
    }
}

const _: () = {
    let mut n = 0;
    while n < Mutant::ALL.len() {
        assert!(Mutant::ALL[n].0 as usize == n);
        n += 1;
    }
};
