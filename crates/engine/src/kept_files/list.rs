//! What the program maps, as the anchor is told: a list in the session, written with a commit when it has changed.
//!
//! The anchor may read it while the next one is written. What it reads is looked at before it is believed: a name must lead to the
//! file's inode.

use crate::control::control;
use crate::regions::Regions;
use crate::sys::futex_wake;
use bytemuck::{Pod, Zeroable};
use core::sync::atomic::Ordering::*;
use outlast_image::layout::{session, SESSION_BASE};
use outlast_image::region::{backing, region_flag, Region};

/// Part of a file; so many bytes of its path follow, and zeros to the next multiple of eight.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
pub struct Entry {
    pub inode: u64,
    pub start: u64,
    pub end: u64,
    /// Of 1s and 0s: mapped shared; may be written to.
    pub is_shared: u16,
    pub can_write: u16,
    pub path_len: u32,
}

const HEAD: usize = size_of::<Entry>();
const LEN: usize = session::MAPPED_FILES_LEN as usize;

fn bytes() -> &'static mut [u8; LEN] {
    // SAFETY: the session is mapped; one process writes, and a reader believes nothing.
    unsafe { &mut *((SESSION_BASE + session::MAPPED_FILES) as *mut [u8; LEN]) }
}

/// What the anchor was told last.
pub struct Told {
    digest: u64,
}

impl Told {
    /// Nothing.
    pub const NOTHING: Told = Told { digest: 0 };

    /// Tells the anchor of the files among encoded regions, if they are others than before.
    pub fn tell(&mut self, object: &[u8]) {
        let digest = digest(object);
        if digest != self.digest {
            self.digest = digest;
            write(object);
            control().mapped_files.fetch_add(1, AcqRel);
            futex_wake(&control().mapped_files);
        }
    }
}

/// Regions of files, each as an entry: also of those that have lost their name, for the anchor may have them from before.
fn files(object: &[u8]) -> impl Iterator<Item = (Entry, &[u8])> {
    Regions::new(object).filter(|m| is_to_be_kept(&m.region)).map(|m| {
        let r = m.region;
        let is_shared = r.backing == backing::SHARED_FILE;
        let entry = Entry {
            inode: r.inode,
            start: r.offset,
            end: r.offset.saturating_add(r.end - r.start),
            is_shared: is_shared.into(),
            can_write: (is_shared && r.prot & 2 != 0).into(),
            path_len: m.path.len() as u32,
        };
        (entry, m.path)
    })
}

/// What goes back with the program (see [`crate::shared_memory`]) the engine has open, and whoever opens it once more would be somebody else.
pub fn is_to_be_kept(region: &Region) -> bool {
    matches!(region.backing, backing::PRIVATE_FILE | backing::SHARED_FILE) && region.flags & region_flag::UNDONE == 0
}

fn digest(object: &[u8]) -> u64 {
    files(object).fold(0, |sum, (file, _)| {
        [file.inode, file.start, file.end, (file.is_shared | file.can_write << 1).into()]
            .iter()
            .fold(sum, |sum: u64, word| (sum.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95))
    })
}

/// Writes the list. Neighbours that are parts of one file become one entry.
fn write(object: &[u8]) {
    let (out, mut at) = (bytes(), 0);
    let mut put = |entry: &Entry, path: &[u8]| {
        let end = at + HEAD + path.len().next_multiple_of(8);
        if end + HEAD <= LEN {
            out[at..at + HEAD].copy_from_slice(bytemuck::bytes_of(entry));
            out[at + HEAD..at + HEAD + path.len()].copy_from_slice(path);
            at = end;
        }
    };
    let mut last: Option<(Entry, &[u8])> = None;
    for (file, path) in files(object) {
        match &mut last {
            Some((known, name)) if (known.inode, known.is_shared, *name) == (file.inode, file.is_shared, path) => {
                known.start = known.start.min(file.start);
                known.end = known.end.max(file.end);
                known.can_write |= file.can_write;
            }
            last => {
                if let Some((known, name)) = last.replace((file, path)) {
                    put(&known, name);
                }
            }
        }
    }
    if let Some((known, name)) = last {
        put(&known, name);
    }
    out[at..at + HEAD].fill(0);
}

/// Calls `f` with each entry of the list and its path.
pub fn each(mut f: impl FnMut(&Entry, &[u8])) {
    let (bytes, mut at) = (bytes(), 0);
    while let Some(head) = bytes.get(at..at + HEAD) {
        let entry: Entry = bytemuck::pod_read_unaligned(head);
        let from = at + HEAD;
        let path = bytes.get(from..from.saturating_add(entry.path_len as usize));
        let Some(path) = path.filter(|_| entry.inode != 0) else { return };
        f(&entry, path);
        at = from + path.len().next_multiple_of(8);
    }
}
