//! A file of measurements that grows by one as soon as it is made, so that what was interrupted goes on: the conditions in the first
//! line, a run in each further one, all as JSON.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::results::Run;

/// Runs under others are no pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditions {
    pub length_ms: u64,
    pub slice_ms: u64,
    pub crash_every_ms: u64,
    pub clients: u32,
    pub keep_alive: bool,
    pub bytes: u32,
    pub workers: u32,
}

pub struct Kept {
    file: File,
}

impl Kept {
    /// The file there, which is made if there is none, and the runs in it. A last line without an end is taken for one whose writer
    /// died.
    pub fn open(path: &Path, conditions: &Conditions) -> io::Result<(Self, Vec<Run>)> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
        file.set_len(bytes.len() as u64)?;
        file.seek(SeekFrom::End(0))?;
        let mut kept = Self { file };
        let bad = |what: String| io::Error::other(format!("{}: {what}", path.display()));
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        match lines.next().map(serde_json::from_slice::<Conditions>) {
            None => kept.line(conditions)?,
            Some(Ok(theirs)) if theirs == *conditions => (),
            Some(Ok(_)) => return Err(bad("it was measured with other options; take them, or another file".into())),
            Some(Err(error)) => return Err(bad(format!("not a file of measurements: {error}"))),
        }
        let run = |(at, line)| serde_json::from_slice(line).map_err(|error| bad(format!("line {}: {error}", at + 2)));
        let runs = lines.enumerate().map(run).collect::<Result<_, _>>()?;
        Ok((kept, runs))
    }

    pub fn add(&mut self, run: &Run) -> io::Result<()> {
        self.line(run)
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}

#[cfg(test)]
mod tests {
    use super::{Conditions, Kept};
    use crate::results::Run;
    use crate::servers::Server;

    fn conditions(clients: u32) -> Conditions {
        Conditions {
            length_ms: 100,
            slice_ms: 50,
            crash_every_ms: 10,
            clients,
            keep_alive: false,
            bytes: 1,
            workers: 1,
        }
    }

    #[test]
    fn what_is_kept_comes_again_and_a_line_that_broke_off_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kept");
        let run =
            |failed| Run { server: Server::Glue, requests: 7, failed, over_time: vec![3, 4], crashes: Vec::new() };
        let (mut kept, none) = Kept::open(&path, &conditions(1)).expect("new");
        assert_eq!(none, []);
        kept.add(&run(0)).expect("kept");
        kept.add(&run(1)).expect("kept");
        let whole = std::fs::read(&path).expect("there");
        std::fs::write(&path, &whole[..whole.len() - 2]).expect("cut");
        let (mut kept, runs) = Kept::open(&path, &conditions(1)).expect("there");
        assert_eq!(runs, [run(0)]);
        kept.add(&run(2)).expect("kept");
        assert_eq!(Kept::open(&path, &conditions(1)).expect("there").1, [run(0), run(2)]);
        // Others must not be counted among these, nor lose anything by the try.
        assert!(Kept::open(&path, &conditions(2)).is_err_and(|error| error.to_string().contains("other options")));
        assert_eq!(Kept::open(&path, &conditions(1)).expect("there").1.len(), 2);
        std::fs::write(&path, "hello\n").expect("written");
        assert!(Kept::open(&path, &conditions(1)).is_err_and(|error| error.to_string().contains("not a file of")));
        assert_eq!(std::fs::read(&path).expect("there"), b"hello\n");
    }
}
