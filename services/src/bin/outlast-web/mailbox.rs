//! A page that a worker of the front and its partner in the content process share: a request on it, then the reply. Who writes
//! is said by the two events that go with it; numbers tell a new request or reply from an old one.

use outlast_glue_rt::{Mapped, Unusable};
use outlast_services::memory::PAGE;

const REQUEST: usize = 0;
const REPLY: usize = 64;
const PATH: usize = 128;
/// Bytes of a path.
pub const LONGEST: usize = PAGE - PATH;

/// Pages of a connection's buffer, in which contents come.
pub const BUFFER_PAGES: u32 = 16;
/// Its bytes.
pub const BUFFER: usize = BUFFER_PAGES as usize * PAGE;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Operation {
    /// Opens a file, and puts its beginning into the buffer, which is made if there is none.
    Open = 1,
    /// The same without contents.
    Status = 2,
    /// Puts the next of an open file into the buffer.
    Fill = 3,
    /// Closes a file whose rest nobody wants.
    Close = 4,
    /// Gives a buffer back.
    Free = 5,
}

impl Operation {
    const ALL: [Self; 5] = [Self::Open, Self::Status, Self::Fill, Self::Close, Self::Free];

    fn from_word(word: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| *operation as u64 == word)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub number: u64,
    pub operation: Operation,
    /// The buffer, as the content process knows it; 0: none.
    pub page: u64,
    /// An open file; 0: none.
    pub file: u64,
    pub path: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    pub number: u64,
    /// 0, or the errno of what went wrong.
    pub errno: u64,
    pub page: u64,
    /// The front's alias of the buffer.
    pub alias: u64,
    /// Open, for there is more of it; 0: that was all.
    pub file: u64,
    /// Bytes of the whole file.
    pub size: u64,
    /// Bytes in the buffer.
    pub filled: u64,
}

fn words<const N: usize>(page: &Mapped, at: usize) -> Result<[u64; N], Unusable> {
    let mut bytes = [0; 64];
    page.read(at, &mut bytes)?;
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_le_bytes);
    }
    Ok(words)
}

fn put(page: &Mapped, at: usize, words: &[u64]) -> Result<(), Unusable> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    page.write(at, &bytes)
}

impl Request {
    /// A path that is too long is `Unusable::Outside`.
    pub fn write(&self, page: &Mapped) -> Result<(), Unusable> {
        page.write(PATH, &self.path)?;
        put(page, REQUEST, &[self.number, self.operation as u64, self.page, self.file, self.path.len() as u64])
    }

    /// None where no such request is there.
    pub fn read(page: &Mapped) -> Result<Option<Self>, Unusable> {
        let [number, operation, buffer, file, length] = words(page, REQUEST)?;
        let Some(operation) = Operation::from_word(operation) else { return Ok(None) };
        let mut path = vec![0; usize::try_from(length).unwrap_or(LONGEST).min(LONGEST)];
        page.read(PATH, &mut path)?;
        Ok(Some(Self { number, operation, page: buffer, file, path }))
    }
}

impl Reply {
    pub fn write(&self, page: &Mapped) -> Result<(), Unusable> {
        put(page, REPLY, &[self.number, self.errno, self.page, self.alias, self.file, self.size, self.filled])
    }

    pub fn read(page: &Mapped) -> Result<Self, Unusable> {
        let [number, errno, buffer, alias, file, size, filled] = words(page, REPLY)?;
        Ok(Self { number, errno, page: buffer, alias, file, size, filled })
    }
}
