//! A region that is cheap to copy and remembers every single change.

use crate::{Page, Region, SyncError, PAGE};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::vec::Vec;

/// Sparse bytes; copies share their pages.
#[derive(Clone, Default)]
pub struct Image {
    pages: BTreeMap<u64, Rc<Page>>,
    pub len: u64,
}

impl Image {
    pub fn new(len: u64) -> Image {
        Image { pages: BTreeMap::new(), len }
    }

    /// Numbers of pages that were ever written and not discarded, with their bytes.
    pub fn pages(&self) -> impl Iterator<Item = (u64, &Page)> {
        self.pages.iter().map(|(number, page)| (*number, &**page))
    }

    pub fn read(&self, off: u64, into: &mut [u8]) {
        assert!(off + into.len() as u64 <= self.len, "read of {} at {off}", into.len());
        let mut done = 0;
        while done < into.len() {
            let (number, at) = ((off + done as u64) / PAGE, (off as usize + done) % PAGE as usize);
            let piece = (into.len() - done).min(PAGE as usize - at);
            match self.pages.get(&number) {
                Some(page) => into[done..done + piece].copy_from_slice(&page[at..at + piece]),
                None => into[done..done + piece].fill(0),
            }
            done += piece;
        }
    }

    pub fn write(&mut self, off: u64, bytes: &[u8]) {
        assert!(off + bytes.len() as u64 <= self.len, "write of {} at {off}", bytes.len());
        let mut done = 0;
        while done < bytes.len() {
            let (number, at) = ((off + done as u64) / PAGE, (off as usize + done) % PAGE as usize);
            let piece = (bytes.len() - done).min(PAGE as usize - at);
            let page = Rc::make_mut(self.pages.entry(number).or_insert_with(|| Rc::new([0; PAGE as usize])));
            page[at..at + piece].copy_from_slice(&bytes[done..done + piece]);
            done += piece;
        }
    }

    pub fn discard(&mut self, off: u64, len: u64) {
        assert!(off % PAGE == 0 && len % PAGE == 0 && off + len <= self.len, "discard of {len} at {off}");
        let gone: Vec<u64> = self.pages.range(off / PAGE..(off + len) / PAGE).map(|(number, _)| *number).collect();
        gone.iter().for_each(|number| drop(self.pages.remove(number)));
    }

    /// Does what was recorded.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Write { off, bytes } => self.write(*off, bytes),
            Op::Publish { off, value } => self.write(*off, &value.to_le_bytes()),
            Op::Discard { off, len } => self.discard(*off, *len),
            Op::Sync { .. } | Op::FailedSync { .. } => {}
        }
    }
}

/// One change.
#[derive(Clone, Debug)]
pub enum Op {
    Write {
        off: u64,
        bytes: Vec<u8>,
    },
    Publish {
        off: u64,
        value: u64,
    },
    Discard {
        off: u64,
        len: u64,
    },
    Sync {
        off: u64,
        len: u64,
    },
    /// The medium refused: the kernel takes what it could not write for written.
    FailedSync {
        off: u64,
        len: u64,
    },
}

/// An image with everything that was done to it.
#[derive(Default)]
pub struct Recorder {
    pub image: Image,
    pub log: Vec<Op>,
    /// Syncs report an error after so many more.
    pub syncs_left: Option<u32>,
    /// [`Region::cache`].
    pub cache: u64,
}

impl From<Image> for Recorder {
    fn from(image: Image) -> Recorder {
        Recorder { image, ..Recorder::default() }
    }
}

impl Recorder {
    fn record(&mut self, op: Op) {
        self.image.apply(&op);
        self.log.push(op);
    }
}

impl Region for Recorder {
    fn len(&self) -> u64 {
        self.image.len
    }

    fn read(&self, off: u64, into: &mut [u8]) {
        self.image.read(off, into);
    }

    fn write(&mut self, off: u64, bytes: &[u8]) {
        self.record(Op::Write { off, bytes: bytes.to_vec() });
    }

    fn publish(&mut self, off: u64, value: u64) {
        assert!(off % 8 == 0);
        self.record(Op::Publish { off, value });
    }

    fn cache(&self) -> u64 {
        self.cache
    }

    fn load(&self, off: u64) -> u64 {
        let mut word = [0; 8];
        self.image.read(off, &mut word);
        u64::from_le_bytes(word)
    }

    fn discard(&mut self, off: u64, len: u64) {
        self.record(Op::Discard { off, len });
    }

    fn sync(&mut self, off: u64, len: u64) -> Result<(), SyncError> {
        assert!(off % PAGE == 0 && len % PAGE == 0 && off + len <= self.image.len, "sync of {len} at {off}");
        let left = self.syncs_left.map(|left| left.checked_sub(1));
        self.syncs_left = left.map(Option::unwrap_or_default);
        if left == Some(None) {
            self.record(Op::FailedSync { off, len });
            return Err(SyncError(5));
        }
        self.record(Op::Sync { off, len });
        Ok(())
    }
}
