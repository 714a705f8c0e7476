//! Names that are made, removed and moved.

use super::hidden;
use super::look::{self, Identity, Look};
use super::place::{Encoder, Place};
use super::{append, Before, Failure};
use crate::dispatch::Call;
use crate::state::{journal, Engine};
use crate::sys::nr;
use crate::user;
use outlast_calls::{row, Witness};

const AT_FDCWD: i64 = -100;
const O_CREAT: u64 = 0o100;
const O_EXCL: u64 = 0o200;
const O_TMPFILE: u64 = 0o20000000;
pub const RENAME_EXCHANGE: u64 = 2;

/// A `GONE` in the journal; the name follows.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub struct GoneEntry {
    pub file: Identity,
    /// Number of the hidden name.
    pub hidden: u64,
}

/// A `MOVED` in the journal; the names follow.
#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub struct MovedEntry {
    pub file: Identity,
    /// What had the new name; with RENAME_EXCHANGE it has the old one afterwards.
    pub other: Identity,
    pub flags: u64,
}

/// What the call does to a name.
enum Deed {
    /// From the working directory or a folder, with a path; the flag says that a symbolic link is followed.
    Make(i64, u64, bool),
    Remove(i64, u64),
    Move([(i64, u64); 2], u64),
}

fn deed(call: &Call) -> Option<Deed> {
    let a = &call.args;
    let creates = |dir: i64, path: u64, flags: u64| {
        let makes = flags & O_CREAT != 0 && flags & O_TMPFILE != O_TMPFILE;
        makes.then_some(Deed::Make(dir, path, flags & O_EXCL == 0))
    };
    match call.nr {
        nr::OPEN => return creates(AT_FDCWD, a[0], a[1]),
        nr::CREAT => return creates(AT_FDCWD, a[0], O_CREAT),
        nr::OPENAT => return creates(a[0] as i64, a[1], a[2]),
        nr::OPENAT2 => return creates(a[0] as i64, a[1], user::read::<u64>(a[2])?),
        // The name of a socket is made of an address.
        nr::BIND => return None,
        _ => {}
    }
    let name = |place: outlast_calls::Place| {
        let dir = place.dir.map_or(AT_FDCWD, |i| a[i as usize] as i32 as i64);
        Some((dir, a[place.path? as usize]))
    };
    match row(call.nr)?.witness {
        Witness::Created(place) => name(place).map(|(dir, path)| Deed::Make(dir, path, false)),
        Witness::Removed(place) => name(place).map(|(dir, path)| Deed::Remove(dir, path)),
        Witness::Moved { from, to } => {
            let flags = if call.nr == nr::RENAMEAT2 { a[4] } else { 0 };
            Some(Deed::Move([name(from)?, name(to)?], flags))
        }
        _ => None,
    }
}

/// Does the call make, remove or move a name?
pub fn concerns(call: &Call) -> bool {
    deed(call).is_some()
}

/// Calls `f` with the folders of the call's names; with `None` for one that cannot be found.
pub fn each_folder(call: &Call, mut f: impl FnMut(Option<i64>)) {
    let mut one = |dir, path| f(Place::named(dir, path).as_ref().map(Place::folder));
    match deed(call) {
        None => {}
        Some(Deed::Make(dir, path, _) | Deed::Remove(dir, path)) => one(dir, path),
        Some(Deed::Move([from, to], _)) => {
            one(from.0, from.1);
            one(to.0, to.1);
        }
    }
}

/// Notes how to undo what the call does to names.
pub fn note(e: &mut Engine, call: &Call) -> Result<Before, Failure> {
    match deed(call) {
        None => Ok(Before::Ready),
        Some(Deed::Make(dir, path, follows)) => note_making(e, dir, path, follows),
        Some(Deed::Remove(dir, path)) => {
            if let Some((place, look)) = present(dir, path) {
                e.undo.known.forget();
                note_gone(e, &place, &look)?;
            }
            Ok(Before::Ready)
        }
        Some(Deed::Move([from, to], flags)) => note_move(e, from, to, flags),
    }
}

/// A name that is there, and what bears it.
fn present(dir: i64, path: u64) -> Option<(Place, Look)> {
    let place = Place::named(dir, path)?;
    let look = place.look()?;
    Some((place, look))
}

fn note_making(e: &mut Engine, dir: i64, path: u64, follows: bool) -> Result<Before, Failure> {
    let Some(place) = Place::named(dir, path) else { return Ok(Before::Ready) };
    match place.look() {
        // What it leads to may not be there.
        Some(look) if look.is_link() && follows && look::through(place.folder(), place.name()).is_err() => {
            Err(Failure::Impossible)
        }
        Some(_) => Ok(Before::Ready),
        None => {
            let mut entry = Encoder::new();
            place.encode(&mut entry);
            append(e, journal::MADE, entry.bytes())?;
            Ok(Before::Making)
        }
    }
}

/// Notes which file has got the name, if any.
pub fn note_made(e: &mut Engine, call: &Call, result: i64) {
    let look = match deed(call) {
        Some(Deed::Make(..)) if result < 0 => None,
        Some(Deed::Make(_, _, true)) => look::of(result as i32).ok(),
        Some(Deed::Make(dir, path, false)) => look::at(dir, path as *const u8).ok(),
        _ => return,
    };
    let file = look.map_or(Identity::NONE, |look| look.identity);
    // Without it the name is undone if it was not there before.
    let _ = append(e, journal::MADE_AS, bytemuck::bytes_of(&file));
}

fn note_gone(e: &mut Engine, place: &Place, look: &Look) -> Result<(), Failure> {
    // A folder has one name only, and another one made in its place is another one.
    if look.is_folder() {
        return Err(Failure::Impossible);
    }
    let hidden = hidden::number();
    let mut entry = Encoder::new();
    entry.put(bytemuck::bytes_of(&GoneEntry { file: look.identity, hidden }));
    place.encode(&mut entry);
    append(e, journal::GONE, entry.bytes())?;
    hidden::make(place, hidden).map_err(|_| Failure::Impossible)
}

fn note_move(e: &mut Engine, from: (i64, u64), to: (i64, u64), flags: u64) -> Result<Before, Failure> {
    let Some((from, moved)) = present(from.0, from.1) else { return Ok(Before::Ready) };
    let Some(to) = Place::named(to.0, to.1) else { return Ok(Before::Ready) };
    e.undo.known.forget();
    let replaced = to.look();
    let other = replaced.map_or(Identity::NONE, |look| look.identity);
    if let Some(replaced) = replaced.filter(|_| flags & RENAME_EXCHANGE == 0 && other != moved.identity) {
        note_gone(e, &to, &replaced)?;
    }
    let mut entry = Encoder::new();
    entry.put(bytemuck::bytes_of(&MovedEntry { file: moved.identity, other, flags }));
    from.encode(&mut entry);
    to.encode(&mut entry);
    append(e, journal::MOVED, entry.bytes())?;
    Ok(Before::Ready)
}
