//! Files as they were at the commit: contents, sizes and names that the program changed are set back by a rollback.
//!
//! Where a commit stands before every visible event there is nothing to set back. A program that commits only when it is asked
//! to (`--commit manual`) is taken far back, and finds its files as it knows them: before a change, what undoes it goes into
//! the journal. Contents are set back where nobody else has the file open (see [`exclusive`]); where somebody has, the write
//! is an event like any output of such a program. What cannot be undone is preceded by a commit.
//!
//! | entry | noted before | undone by |
//! |---|---|---|
//! | `FILE` identity, size, descriptor, path | the first change of a file's content since the commit | setting the size |
//! | `BYTES` place of the `FILE`, offset, bytes | what overwrites or cuts off bytes older than that | writing them |
//! | `MADE` name | making a name | removing it |
//! | `MADE_AS` identity | (after that) | |
//! | `GONE` identity, number of the hidden name, name | removing a file's name, or replacing it | renaming the hidden name |
//! | `MOVED` identity, flags, both names | renaming | renaming |
//!
//! Entries are undone newest first, each only where names and files still are what the program made of them, so that it
//! may be done twice. Folders are removed after a commit. Modes, owners, times and attributes stay as they were set.
//!
//! What a program writes to a file through a mapping is no event: where nobody else has the file open it is set back whenever commits
//! are taken ([`note_mapped`]).

mod change;
mod content;
mod exclusive;
pub mod hidden;
mod lease;
pub mod look;
mod names;
mod place;
pub mod rollback;

pub use change::{change, cut, flags_of, target, Change};
pub use content::{note_mapped, Noting};
pub use exclusive::{is_alone, is_shared, load as load_shared, share, share_all};
pub use lease::{is_open_once, set_back as set_lease_back};
pub use look::{of as look_at, Identity, Look};
pub use names::{concerns as concerns_names, each_folder};

use crate::calls;
use crate::calls::unseen::chosen;
use crate::commit::commit_before_call;
use crate::control::degrade;
use crate::dispatch::Call;
use crate::state::Engine;
use outlast_image::degradation::Degradation;
use outlast_store::{MappedRegion, Store, ENTRIES_MAX};

/// Entries of the journal that others may need.
const RESERVE: u32 = 8 << 10;

/// What the engine keeps in mind for this.
pub struct Undo {
    known: content::Known,
    pub shared: exclusive::Shared,
}

impl Undo {
    pub const fn new() -> Undo {
        Undo { known: content::Known::new(), shared: exclusive::Shared::new() }
    }
}

/// A commit was published.
pub fn committed(store: &mut Store<'static, MappedRegion>) {
    if hidden::exist() {
        hidden::remove_committed(store);
    }
}

/// A rollback has undone the journal: what was removed before the commit may still have to be removed for good, and the
/// program goes on in its directory of then.
pub fn rolled_back(e: &mut Engine) {
    exclusive::load(e);
    e.undo.known.forget();
    if chosen(e) {
        hidden::remove_committed(e.store());
        calls::directory::return_to(e);
    }
}

/// Why a change could not be noted.
enum Failure {
    /// The journal is full.
    Full,
    /// There is no way to undo it.
    Impossible,
}

/// What is to be done about a change before it is made.
pub enum Before {
    /// It may be made.
    Ready,
    /// It may be made, and [`after`] must be told of it.
    Making,
    /// It cannot be undone: to be made as if commits were taken for every visible event.
    Visible,
}

/// Notes how to undo what the call is about to do to files.
pub fn before(e: &mut Engine, call: &Call) -> Before {
    for _ in 0..2 {
        match names::note(e, call).and_then(|before| content::note(e, call).map(|()| before)) {
            Ok(before) => return before,
            Err(Failure::Impossible) if names::concerns(call) => return Before::Visible,
            // Whoever is restored from here writes the same again.
            Err(Failure::Impossible) if commit_before_call(e) != 0 && content::note_size(e, call).is_ok() => {
                return Before::Ready
            }
            Err(Failure::Full) if commit_before_call(e) != 0 => {}
            Err(_) => break,
        }
    }
    degrade(Degradation::FileKept);
    Before::Ready
}

/// Tells what became of a name that was to be made.
pub fn after(e: &mut Engine, call: &Call, result: i64) {
    names::note_made(e, call, result);
}

/// Is the call one that does not wait? Nobody may commit between the note and what it tells of.
pub fn is_quick(e: &mut Engine, call: &Call, before: &Before) -> bool {
    matches!(before, Before::Making) || change::is_quick(e, call)
}

/// The program ends: what it removed is gone for good.
pub fn settle(e: &mut Engine) {
    if hidden::exist() {
        commit_before_call(e);
    }
}

/// Notes `bytes` in the journal.
fn append(e: &mut Engine, kind: u16, bytes: &[u8]) -> Result<(), Failure> {
    if e.store().journal_count() > ENTRIES_MAX - RESERVE {
        return Err(Failure::Full);
    }
    e.store().journal_append(kind, bytes).map_err(|_| Failure::Full)
}
