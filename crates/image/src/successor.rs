//! How the anchor starts another supervisor when the one there was has died.

/// What the anchor executes. Written by the supervisor; the program can write it too, but whoever executes it has no more
/// rights than the program. Each field is a string ended by NUL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Successor {
    /// Path of outlast's executable; empty: there is none.
    pub exe: [u8; 1024],
    /// The command by which it becomes a supervisor.
    pub command: [u8; 32],
    /// Name of the program.
    pub name: [u8; 96],
    /// Its only variable of the environment: where its state folder is.
    pub state: [u8; 1024],
}

const _: () = assert!(core::mem::size_of::<Successor>() <= crate::layout::PAGE as usize);

impl Successor {
    /// Describes nobody.
    pub const NONE: Self = Self { exe: [0; 1024], command: [0; 32], name: [0; 96], state: [0; 1024] };
}
