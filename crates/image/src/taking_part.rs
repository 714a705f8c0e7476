//! What a program that takes part says to the engine: a prctl with an option that no kernel knows, so that it fails with
//! EINVAL wherever no engine is at the gate. `crates/api` has the program's side of it.

/// The option, `prctl`'s first argument.
pub const OPTION: u64 = u32::from_le_bytes(*b"Outl") as u64;

/// What is asked, `prctl`'s second argument.
pub mod ask {
    /// Commits since the program's start, its last execve or its last resume from the store alone.
    pub const COMMITS: u64 = 0;
    /// Recoveries since then.
    pub const RECOVERIES: u64 = 1;
    /// Bits of [`crate::degradation::Degradation`] since then.
    pub const DEGRADATIONS: u64 = 2;
    /// Number of the last commit, which goes on through execve and resume.
    pub const LAST: u64 = 3;
    /// Commit now. The number of the commit.
    pub const COMMIT: u64 = 4;
    /// Third to fifth argument: the function before a commit or 0, its argument, and where it returns to.
    pub const BEFORE_COMMIT: u64 = 5;
    /// The same for the function after a recovery.
    pub const AFTER_RECOVERY: u64 = 6;
    /// One of these functions has returned.
    pub const RETURN: u64 = 7;
    /// Third argument: a [`crate::sections::Registry`] of the program's. 0, also where it is known already.
    pub const SECTIONS: u64 = 8;
}

/// Which recovery it was: the second argument of the function after it. The numbers of the rungs.
pub mod recovery {
    /// The same process went back to its last commit, after a fatal signal.
    pub const ROLLED_BACK: u64 = 1;
    /// A new process, with the files and connections of the one that died.
    pub const RESPAWNED: u64 = 2;
    /// Everything had died: files were opened again, connections are closed.
    pub const RESUMED: u64 = 3;
}
