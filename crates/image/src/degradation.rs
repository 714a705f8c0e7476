//! What could not be preserved. A degradation is a value: shown beforehand by `check`, afterwards in the log, never silent.

macro_rules! degradations {
    ($($(#[doc = $text:literal])+ $name:ident = $bit:literal, $key:literal;)*) => {
        /// One thing that outlast cannot preserve here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Degradation { $($(#[doc = $text])+ $name = $bit,)* }
        impl Degradation {
            /// All of them, in the order of their bits.
            pub const ALL: &'static [Degradation] = &[$(Degradation::$name,)*];
            /// Its name in `ps --json` and the log.
            pub const fn key(self) -> &'static str { match self { $(Degradation::$name => $key,)* } }
            /// One sentence for a person.
            pub const fn text(self) -> &'static str { match self { $(Degradation::$name => concat!($($text),+),)* } }
            /// Its bit in [`crate::control::Control::degradations`].
            pub const fn bit(self) -> u64 { 1 << (self as u8) }
        }
    };
}

degradations! {
    /// The program started a second thread; protection is suspended while it runs.
    Threads = 0, "threads";
    /// The program has child processes; they are not protected, and a recovered parent cannot wait for them.
    Children = 1, "children";
    /// A writable file is mapped shared; what is written through the mapping is not rolled back.
    SharedMapping = 2, "shared-mapping";
    /// io_uring is not available; a kill within a call may lose or repeat it where the kernel leaves no note of it: on devices that do not splice, packet pipes, and between two descriptors (splice).
    NoRing = 3, "no-io-uring";
    /// The process id could not be kept; the program itself still sees its old one.
    PidChanged = 4, "pid-changed";
    /// The store has no room left; protection is suspended.
    StoreFull = 5, "store-full";
    /// The program's own vector state is larger than the engine saves.
    VectorState = 6, "vector-state";
    /// A system call with no known class was made; a commit was taken before and after it.
    UnknownCall = 7, "unknown-call";
    /// The program is set-user-ID, set-group-ID or has file capabilities; it runs unprotected.
    PrivilegedProgram = 8, "privileged-program";
    /// The program's file is not readable; it runs unprotected.
    UnreadableProgram = 9, "unreadable-program";
    /// The kernel or its policy forbids attaching to the program; it runs unprotected.
    TraceForbidden = 10, "trace-forbidden";
    /// The kernel offers no way to track dirty pages; the program runs unprotected.
    NoTracker = 11, "no-tracker";
    /// A descriptor or the working directory could not be reopened after a cold resume.
    DescriptorLost = 12, "descriptor-lost";
    /// A mapped file changed or vanished and could not be mapped again.
    MappingLost = 13, "mapping-lost";
    /// The engine's addresses were taken, or are more than a limit (ulimit -v) leaves; the program runs unprotected.
    AddressTaken = 14, "address-taken";
    /// A call on a kernel object that is not brought back was made (mq_notify, keyrings, performance counters …).
    KernelObject = 15, "kernel-object";
    /// The program is a 32-bit binary; it runs unprotected.
    ForeignAbi = 16, "foreign-abi";
    /// The engine met an error of its own; protection is suspended.
    EngineError = 17, "engine-error";
    /// Realtime signals that were pending when the program died were lost, or too many that it had sent to itself.
    SignalLost = 18, "signal-lost";
    /// The last commits could not be read back from the store; the program went on from an older state, and what it did since is done again.
    OlderState = 19, "older-state";
    /// The program may have so few descriptors that none are left for the engine; it runs unprotected.
    DescriptorLimit = 20, "descriptor-limit";
    /// A file that others have open, or have changed, is not taken back to the commit (with --commit manual).
    FileKept = 21, "file-kept";
    /// Input that a recovered program had yet to take again was lost: for a child, a program that was executed, or as protection was suspended.
    InputLost = 22, "input-lost";
    /// The program has given the GS register a base of its own, which the engine needs; it runs on without protection.
    GsUsed = 23, "gs-used";
    /// The program went where it cannot reach /proc (chroot, another mount namespace), and may mount none; it runs on without protection.
    ProcHidden = 24, "proc-hidden";
    /// A recovered process could not be put into the control group of the one that died; limits of another one apply to it.
    ControlGroup = 25, "control-group";
    /// Memory that the program had locked could not be locked again.
    MemoryLock = 26, "memory-lock";
    /// A filter of system calls (seccomp), or one thread's rules of Landlock, leave the engine without what it needs, or the program executed another one under its filters; it runs on without protection.
    CallFilter = 27, "call-filter";
    /// The program serves page faults of its own memory (userfaultfd) in a way that cannot be preserved; it runs on without protection.
    OwnFaults = 28, "own-faults";
    /// A recovered server replied otherwise than before the death (with the module server); what a client got may be of both.
    ReplyDiffers = 29, "reply-differs";
    /// A program that went back to an older generation sent something else than it had sent before; what others got is of both.
    OutputDiffers = 30, "output-differs";
}
