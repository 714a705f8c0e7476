//! The pin `mem`: the program's memory (RMK, Table 3), as the kernel accounts for it, and copies of it. All sizes in bytes.
//!
//! Pages are not protected from here: that can be done from inside only, by the engine, whose business the protection of pages is anyhow.

use crate::named;
use crate::watch::Look;
use outlast_core::Interface;
use serde::{Deserialize, Serialize};

pub const NAME: &str = "mem";

/// Operation: what it has is looked at at intervals. Argument: [`crate::watch::Watch`].
pub const WATCH: &str = "watch";
/// Operation: what of it is shared and what is dirty. Argument: `String`, the program; result: [`Account`]. The kernel goes through all of
/// its pages for this (`smaps_rollup`): some ten milliseconds for a GiB, in which the program maps nothing.
pub const ACCOUNT: &str = "account";
/// Operation: a copy of its memory. Argument: [`Range`]; result: its bytes. Pages of it may be from different moments.
pub const COPY: &str = "copy";
/// Operation: where its pages are. Argument: [`Range`]; result: `Vec<Page>`, one for each page that the range touches.
pub const PAGES: &str = "pages";

/// Event: it was looked at. Payload: [`Measured`].
pub const MEASURED: &str = "measured";

pub const INTERFACE: Interface = Interface {
    name: NAME,
    what: "measures memory, and copies it",
    operations: &[
        named(WATCH, "a program's memory is measured at intervals"),
        named(ACCOUNT, "what of it is shared and what is dirty"),
        named(COPY, "a copy of its memory"),
        named(PAGES, "where its pages are"),
    ],
    events: &[named(MEASURED, "a program's memory was measured")],
};

/// So much is copied at most.
pub const MOST: u64 = 64 << 10;
/// Of so many pages it is said at most where they are.
pub const MOST_PAGES: u64 = 4096;

/// A part of a program's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    pub program: String,
    pub address: u64,
    /// At most [`MOST`], or [`MOST_PAGES`] pages.
    pub length: u64,
}

/// How much it has: what the kernel counts anyhow (`/proc/PID/status`), so that asking costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    pub look: Look,
    /// In RAM.
    pub resident: u64,
    /// Of that: nobody else's, and not of a file.
    pub anonymous: u64,
    /// Of that: of files.
    pub files: u64,
    /// Of that: shared, of no file that has a name.
    pub shared: u64,
    /// Anonymous, and swapped out.
    pub swapped: u64,
    /// So much the tightest of its control groups allows all its members, or so much RAM the machine has, if that is less.
    pub limit: Option<u64>,
}

/// What of its memory is whose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub resident: u64,
    /// What it shares counted in parts, so that those of all processes add up.
    pub proportional: u64,
    pub shared_clean: u64,
    pub shared_dirty: u64,
    pub private_clean: u64,
    pub private_dirty: u64,
    pub swapped: u64,
}

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Page {
    /// Not mapped, or never touched.
    Absent,
    Swapped,
    Present {
        /// Mapped nowhere else.
        exclusive: bool,
        /// Of a file, or shared.
        file: bool,
    },
}
