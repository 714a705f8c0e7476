//! The classes: what the gate does with a call.

macro_rules! classes {
    ($($(#[doc = $text:literal])+ $name:ident = $value:literal;)*) => {
        /// What the gate does with a call. The values are stable: assembler compares them with 0, stores may keep them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Class { $($(#[doc = $text])+ $name = $value,)* }

        impl Class {
            /// All of them, in the order of their values.
            pub const ALL: &'static [Class] = &[$(Class::$name,)*];

            /// Its name in logs and figures.
            pub const fn name(self) -> &'static str {
                match self { $(Class::$name => stringify!($name),)* }
            }
        }
    };
}

classes! {
    /// Has no effect that a rollback must know; may wait; passed straight through.
    Pure = 0;
    /// Changes the address space; the engine's knowledge of regions follows.
    Map = 1;
    /// Makes private descriptors only; logged and undone.
    Open = 2;
    /// Takes descriptors away; logged and undone.
    Close = 3;
    /// Moves an offset; logged and undone.
    Offset = 4;
    /// Consumes bytes, connections or events; what was taken since the commit is served again.
    Input = 5;
    /// Sends bytes that somebody else can see; committed before, done exactly once.
    Output = 6;
    /// Visible but idempotent; committed before, issued again after a death.
    Redo = 7;
    /// Visible and not idempotent; a ring operation or a testable state tells whether it happened.
    Once = 8;
    /// Signal state; the engine owns it.
    Signal = 9;
    /// State of a thread; the engine keeps a copy and sets it again, or refines the call by its first argument.
    Thread = 10;
    /// Makes a process or a thread.
    Spawn = 11;
    /// Replaces the program.
    Exec = 12;
    /// Waits for a child and takes its status.
    Wait = 13;
    /// Ends the thread or the process.
    Exit = 14;
    /// A kernel object that a rollback does not bring back; committed before and after, with a degradation.
    Object = 15;
    /// Credentials, namespaces, mounts, labels and the administration of the machine; committed before and after,
    /// never set from a store.
    Security = 16;
    /// Has no implementation in any kernel that outlast runs on; its ENOSYS is passed through.
    Absent = 17;
    /// Nothing is known about it; treated as visible, committed before and after.
    Unknown = 18;
}

const _: () = assert!(Class::Pure as u8 == 0);
