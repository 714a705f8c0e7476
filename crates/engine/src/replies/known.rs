//! What is known of connections since the last commit. A connection is known by its source, since the program may have it open under
//! several numbers.

/// Connections that are answered between two commits; on others replies have a commit before them.
const PLACES: usize = 4096;
/// Places that one connection may have.
const NEIGHBOURS: usize = 8;

/// A connection.
#[derive(Clone, Copy)]
pub struct Known {
    pub source: u64,
    /// The commit since which it is known, and one more; 0: the place is free.
    pub since: u64,
    pub fd: i32,
    /// Nothing that is sent there is a reply.
    pub is_other: bool,
    /// All that had been sent at the commit, as the kernel counts.
    pub base: u64,
    /// Bytes that the program has sent since, or was told that it has.
    pub replied: u64,
    /// Bytes that a recovered program need not send: they have been sent before.
    pub left: u64,
    pub sum: Sum,
    /// What the predecessor's sum was after so many bytes; 0 bytes: nobody knows.
    pub expected: (u64, u32),
}

/// A sum over the bytes that were replied since the commit, or none any more: of a file's bytes there is none.
#[derive(Clone, Copy)]
pub struct Sum {
    pub crc: u32,
    pub is_lost: bool,
}

impl Known {
    pub const NOTHING: Known = Known {
        source: 0,
        since: 0,
        fd: 0,
        is_other: false,
        base: 0,
        replied: 0,
        left: 0,
        sum: Sum { crc: 0, is_lost: false },
        expected: (0, 0),
    };
}

/// All of them, each near the place that its source says.
pub struct Table([Known; PLACES]);

impl Table {
    pub const fn new() -> Table {
        Table([Known::NOTHING; PLACES])
    }

    pub fn clear(&mut self) {
        self.0.fill(Known::NOTHING);
    }

    fn places(source: u64) -> impl Iterator<Item = usize> {
        (0..NEIGHBOURS).map(move |i| (source as usize).wrapping_add(i) % PLACES)
    }

    pub fn find(&mut self, source: u64, since: u64) -> Option<&mut Known> {
        let is_it = |known: &Known| (known.source, known.since) == (source, since);
        let place = Self::places(source).find(|&place| is_it(&self.0[place]))?;
        Some(&mut self.0[place])
    }

    /// Adds one that is not there. False: there is no room.
    pub fn add(&mut self, known: Known) -> bool {
        let is_free = |place: &Known| place.since != known.since;
        match Self::places(known.source).find(|&place| is_free(&self.0[place])) {
            Some(place) => {
                self.0[place] = known;
                true
            }
            None => false,
        }
    }

    /// Those of which something is left.
    pub fn owed(&mut self) -> impl Iterator<Item = &mut Known> {
        self.0.iter_mut().filter(|known| known.left > 0)
    }
}
