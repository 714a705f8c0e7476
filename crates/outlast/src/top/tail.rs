//! What is new in a program's log.

use outlast_supervisor::log::{Entry, Kind, FILE};
use outlast_supervisor::program_folder::ProgramFolder;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

/// So many entries are kept to be shown.
const KEPT: usize = 200;
/// So much is read at once.
const PIECE: usize = 1 << 20;

/// A log, read as far as it goes.
#[derive(Default)]
pub struct Tail {
    inode: u64,
    at: u64,
    /// A line whose end is not there yet.
    rest: Vec<u8>,
    pub entries: VecDeque<Entry>,
    pub hangs: u64,
    pub storms: u64,
}

impl Tail {
    /// Reads on. A log that another one has taken the place of is read from its beginning.
    pub fn follow(&mut self, folder: &ProgramFolder) {
        let Ok(mut file) = File::open(folder.path().join(FILE)) else { return };
        let Ok(stat) = file.metadata() else { return };
        if stat.ino() != self.inode || stat.len() < self.at {
            *self = Self { inode: stat.ino(), ..Self::default() };
        }
        if file.seek(SeekFrom::Start(self.at)).is_err() {
            return;
        }
        let mut piece = vec![0; PIECE.min((stat.len() - self.at) as usize)];
        while let Ok(read @ 1..) = file.read(&mut piece) {
            self.at += read as u64;
            self.rest.extend(&piece[..read]);
            let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            for line in self.rest.drain(..whole).collect::<Vec<_>>().split(|byte| *byte == b'\n') {
                // What another version wrote is not counted.
                if let Ok(entry) = serde_json::from_slice(line) {
                    Self::add(&mut self.entries, &mut self.hangs, &mut self.storms, entry);
                }
            }
        }
    }

    fn add(entries: &mut VecDeque<Entry>, hangs: &mut u64, storms: &mut u64, entry: Entry) {
        match entry.event {
            Kind::Hung => *hangs += 1,
            Kind::Storm => *storms += 1,
            _ => (),
        }
        if entries.len() == KEPT {
            entries.pop_front();
        }
        entries.push_back(entry);
    }
}
