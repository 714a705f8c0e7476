//! What a store shall hold, kept in the plainest way.

use super::image::Recorder;
use crate::{Page, Store, CHUNK, PAGE};
use std::collections::BTreeMap;
use std::format;
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;

/// A published state.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Model {
    pub seq: u64,
    pub pages: BTreeMap<u64, Rc<Page>>,
    pub objects: BTreeMap<(u16, u64), Rc<Vec<u8>>>,
    pub journal: Vec<(u16, Rc<Vec<u8>>)>,
}

/// Chunks that histories use: more than the region has frames for.
pub const CHUNKS: [u64; 6] = [0, CHUNK, 2 * CHUNK, 0x7f00_0000_0000, 0x7fff_ffe0_0000, 40 * CHUNK];
/// Pages of a chunk that histories use.
pub const PAGES: [u64; 4] = [0, 1, 63, 511];

/// One change within a transaction.
#[derive(Clone, Debug)]
pub enum Change {
    /// Whole page with pseudo-random content.
    Page {
        addr: u64,
        fill: u64,
    },
    /// The same for pages in a row.
    Pages {
        addr: u64,
        count: u64,
        fill: u64,
    },
    /// These lines of the page get new content.
    Diff {
        addr: u64,
        lines: u64,
        fill: u64,
    },
    Drop {
        start: u64,
        end: u64,
    },
    Put {
        kind: u16,
        key: u64,
        len: usize,
        fill: u64,
    },
    Delete {
        kind: u16,
        key: u64,
    },
}

/// Content that depends on every bit of `fill`, so that mixtures of versions show.
pub fn content(fill: u64) -> Page {
    let mut page = [0; PAGE as usize];
    for (n, word) in page.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&(fill.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (n as u64) << 32).to_le_bytes());
    }
    page
}

impl Model {
    /// Does to the model what [`Change::make`] does to the store.
    pub fn change(&mut self, change: &Change) {
        match *change {
            Change::Page { addr, fill } => drop(self.pages.insert(addr, Rc::new(content(fill)))),
            Change::Pages { addr, count, fill } => (0..count).for_each(|n| {
                self.pages.insert(addr + n * PAGE, Rc::new(content(fill + n)));
            }),
            Change::Diff { addr, lines, fill } => {
                let page = diffed(self.pages.get(&addr).map_or([0; PAGE as usize], |page| **page), lines, fill);
                self.pages.insert(addr, Rc::new(page));
            }
            Change::Drop { start, end } => self.pages.retain(|addr, _| !(start..end).contains(addr)),
            Change::Put { kind, key, len, fill } => {
                self.objects.insert((kind, key), Rc::new(content(fill)[..len].to_vec()));
            }
            Change::Delete { kind, key } => drop(self.objects.remove(&(kind, key))),
        }
    }
}

fn diffed(mut page: Page, lines: u64, fill: u64) -> Page {
    let new = content(fill);
    for line in (0..64).filter(|line| lines >> line & 1 != 0) {
        page[line * 64..line * 64 + 8].copy_from_slice(&new[line * 64..line * 64 + 8]);
    }
    page
}

impl Change {
    /// Does the change in the open transaction of a store that holds `before` so far.
    pub fn make(&self, store: &mut Store<Recorder>, before: &Model) {
        match *self {
            Change::Page { addr, fill } => store.page(addr, &content(fill)),
            Change::Pages { addr, count, fill } => {
                store.pages(addr, &(0..count).flat_map(|n| content(fill + n)).collect::<Vec<u8>>());
            }
            Change::Diff { addr, lines, fill } => {
                let mut shadow = before.pages.get(&addr).map_or([0; PAGE as usize], |page| **page);
                let page = diffed(shadow, lines, fill);
                // SAFETY: two live arrays.
                unsafe { store.diff(addr, &page, &mut shadow) };
                assert!(shadow == page || store.commit().is_err(), "the shadow follows the page");
            }
            Change::Drop { start, end } => store.drop_range(start, end),
            Change::Put { kind, key, len, fill } => {
                let bytes = &content(fill)[..len];
                match fill % 2 {
                    0 => store.put(kind, key, bytes),
                    _ => store.put2(kind, key, &bytes[..len / 3], &bytes[len / 3..]),
                }
            }
            Change::Delete { kind, key } => store.delete(kind, key),
        }
    }
}

/// Compares pages and objects, read one by one.
pub fn compare(store: &Store<Recorder>, model: &Model) -> Result<(), String> {
    for chunk in CHUNKS {
        for number in PAGES.iter().chain([&2, &64, &65]) {
            let addr = chunk + number * PAGE;
            let mut page = [1; PAGE as usize];
            let found = store.read_page(addr, &mut page).map_err(|error| format!("page {addr:#x}: {error}"))?;
            let wanted = model.pages.get(&addr);
            if found != wanted.is_some() || store.contains(addr) != found || store.frame_of(addr).is_some() != found {
                return Err(format!("page {addr:#x} is {}", if found { "present" } else { "absent" }));
            }
            if page != wanted.map_or([0; PAGE as usize], |page| **page) {
                return Err(format!("page {addr:#x} has other content"));
            }
        }
    }
    let mut objects = BTreeMap::new();
    store.objects(&mut |kind, key, len| {
        let mut bytes = std::vec![0; len];
        assert_eq!(store.object(kind, key, &mut bytes), Some(len));
        objects.insert((kind, key), Rc::new(bytes));
    });
    if objects != model.objects {
        return Err(format!("objects are {:?}, not {:?}", objects.keys(), model.objects.keys()));
    }
    Ok(())
}

/// Compares the frames themselves, as they are mapped after [`Store::open`]: pages that are absent are zero, in chunks that
/// are in use and in those that will be.
pub fn compare_frames(store: &Store<Recorder>, model: &Model) -> Result<(), String> {
    let mut frames = BTreeMap::new();
    store.runs(0, 1 << 57, &mut |addr, off, len| {
        for at in (0..len).step_by(PAGE as usize) {
            frames.insert((off + at) / PAGE, addr + at);
        }
    });
    if frames.len() != model.pages.len() || !frames.values().all(|addr| model.pages.contains_key(addr)) {
        return Err(format!("{} pages are mapped, not {}", frames.len(), model.pages.len()));
    }
    let base = store.areas().base.off / PAGE;
    let zero = [0; PAGE as usize];
    for (number, page) in store.region().image.pages().filter(|(number, _)| *number >= base) {
        let wanted = frames.remove(&number).map_or(&zero, |addr| &*model.pages[&addr]);
        if page != wanted {
            return Err(format!("frame {} has other content than its page", number - base));
        }
    }
    match frames.values().find(|addr| *model.pages[addr] != zero) {
        Some(addr) => Err(format!("page {addr:#x} has no frame")),
        None => Ok(()),
    }
}

/// What the journal holds.
pub fn journal(store: &mut Store<Recorder>) -> Vec<(u16, Rc<Vec<u8>>)> {
    let mut entries = Vec::new();
    store.journal_for_each(&mut |_, kind, bytes| entries.push((kind, Rc::new(bytes.to_vec()))));
    entries
}
