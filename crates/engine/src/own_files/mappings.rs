//! What the program maps of these files, unmaps and moves.

use super::keeping::{adopt, disown, disown_all, is_usable, TMPFS_MAGIC};
use super::{device_of, key_at, views, OwnFiles, KEYS, KEYS_EACH};
use crate::mutant::without;
use crate::state::Engine;
use crate::tracker::Track;
use crate::undo::look_at;
use outlast_image::mutant::Mutant;

/// The program is about to map a file, shared. Is it one of these from now on? What is in it has to be committed before anything can be written
/// there.
pub fn mapping(e: &mut Engine, fd: i32) -> bool {
    let Some(look) = look_at(fd).ok().filter(|look| look.is_regular() && look.links == 0) else { return false };
    match e.own_files.find(device_of(&look), look.identity.inode()) {
        None => adopt(e, fd, &look),
        // Who tells of written pages may not know them there.
        Some(place) if !is_usable(fd, &[TMPFS_MAGIC]) => {
            disown(e, place);
            false
        }
        Some(_) => false,
    }
}

/// The program has mapped `fd`, shared. Is it one of these?
pub fn mapped(e: &mut Engine, fd: i32, (start, end): (u64, u64), offset: u64) -> bool {
    if !e.own_files.any {
        return false;
    }
    let Some(look) = look_at(fd).ok().filter(|look| look.links == 0) else { return false };
    let Some(place) = e.own_files.find(device_of(&look), look.identity.inode()) else { return false };
    let fits = offset.checked_add(end - start).is_some_and(|end| end <= KEYS_EACH);
    if !fits || !views::put(start, end, key_at(place) + offset) {
        disown(e, place);
        return false;
    }
    true
}

/// The program is about to unmap what lies there, or to map something else in its place. What it has written there nobody could find any
/// more.
pub fn unmapping(e: &mut Engine, start: u64, end: u64) {
    if !e.own_files.any {
        return;
    }
    let Engine { own_files, tracker, .. } = e;
    views::each(start, end, |start, end, key| {
        if tracker.may_be_written(start, end) && !without(Mutant::UnmappedChanges) {
            own_files.note(key, end - start);
        }
    });
}

impl OwnFiles {
    /// The part of a file that is kept at these keys has changed.
    fn note(&mut self, key: u64, len: u64) {
        let (place, from) = (((key - KEYS) / KEYS_EACH) as usize, (key - KEYS) % KEYS_EACH);
        self.files[place].changed.add(from, from + len);
    }
}

/// It has done so.
pub fn unmapped(e: &mut Engine, start: u64, end: u64) {
    if e.own_files.any && !views::remove(start, end) {
        disown_all(e);
    }
}

/// What lay at `old` lies at `new`, or at both.
pub fn moved(e: &mut Engine, old: (u64, u64), new: (u64, u64), keeps_old: bool) {
    if !e.own_files.any {
        return;
    }
    let key = views::key_of(old.0);
    let is_cleared = (keeps_old || views::remove(old.0, old.1)) && views::remove(new.0, new.1);
    if !is_cleared || key.is_some_and(|key| !views::put(new.0, new.1, key)) {
        disown_all(e);
    }
}

/// A hole was made in the files through what is mapped there.
pub fn content_changed(e: &mut Engine, start: u64, end: u64) {
    if e.own_files.any {
        views::each(start, end, |start, end, key| e.own_files.note(key, end - start));
    }
}
