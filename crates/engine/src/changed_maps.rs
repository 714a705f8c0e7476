//! The map of the process as a text, of which only what has changed is asked for.
//!
//! Reading /proc/self/maps takes the kernel half a microsecond a line, mostly for names of files; programs that map something for each
//! request would pay that with each commit. Kernels from 6.11 on tell of single mappings (PROCMAP_QUERY): the lines that a call may have
//! changed, and their neighbours, are made from that. Where anything is unclear, all is read.

use crate::call_filters;
use crate::control::control;
use crate::proc;
use crate::regions::{each_line, read_maps};
use crate::scratch;
use crate::state::Engine;
use crate::sys::{nr, syscall};
use core::sync::atomic::Ordering::Relaxed;

/// Changes between two commits that are followed one by one.
const ROOM: usize = 8;
/// `_IOWR('f', 17, struct procmap_query)`.
const PROCMAP_QUERY: u64 = 0xc068_6611;
const COVERING_OR_NEXT: u64 = 0x10;
const ENOENT: i64 = -2;
/// Bits of `vma_flags` in the order of the text, and their letters.
const READ_WRITE_EXECUTE: [(u64, u8); 3] = [(1, b'r'), (2, b'w'), (4, b'x')];
const SHARED: u64 = 8;
/// Longest name, and what a line takes besides.
const NAME: usize = 4096;
const LINE: usize = 128;

/// `struct procmap_query`.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    flags: u64,
    address: u64,
    start: u64,
    end: u64,
    vma_flags: u64,
    page_size: u64,
    offset: u64,
    inode: u64,
    major: u32,
    minor: u32,
    name_size: u32,
    build_id_size: u32,
    name: u64,
    build_id: u64,
}

const _: () = assert!(core::mem::size_of::<Query>() == 104);

/// What has changed since the text was made.
pub struct Changes {
    ranges: [(u64, u64); ROOM],
    count: usize,
    /// More than are followed.
    too_many: bool,
    /// Bytes of the text that is kept; 0: there is none.
    len: usize,
    /// The kernel does not tell of single mappings.
    is_unheard_of: bool,
}

impl Changes {
    pub const NONE: Changes =
        Changes { ranges: [(0, 0); ROOM], count: 0, too_many: false, len: 0, is_unheard_of: false };

    /// A call has changed what is mapped there.
    pub fn add(&mut self, start: u64, end: u64) {
        let known = self.ranges[..self.count].iter_mut().find(|range| range.0 <= end && start <= range.1);
        match known {
            Some(range) => *range = (range.0.min(start), range.1.max(end)),
            None if self.count < ROOM => {
                self.ranges[self.count] = (start, end);
                self.count += 1;
            }
            None => self.too_many = true,
        }
    }

    #[inline(always)]
    pub fn any(&self) -> bool {
        self.count != 0
    }

    /// Nothing is known any more.
    pub fn forget(&mut self) {
        (self.count, self.too_many, self.len) = (0, false, 0);
    }
}

/// The present text; as far as the program's own mappings go, up to date.
pub fn text(e: &mut Engine) -> &'static [u8] {
    let changes = &mut e.map_changes;
    let whole = e.maps_dirty || e.tracker.guards_kernel_writes() || changes.too_many || changes.len == 0;
    let may_ask = !changes.is_unheard_of && call_filters::permit(nr::IOCTL as u32);
    if !whole && may_ask && apply(changes) {
        changes.count = 0;
        return &scratch::kept_maps()[..changes.len];
    }
    let text = read_maps();
    control().maps_read.fetch_add(1, Relaxed);
    changes.forget();
    if let Some(to) = scratch::kept_maps().get_mut(..text.len()) {
        to.copy_from_slice(text);
        changes.len = text.len();
    }
    text
}

fn apply(changes: &mut Changes) -> bool {
    let Ok(file) = proc::open(c"/proc/self/maps", 0) else { return false };
    let ranges = changes.ranges;
    ranges[..changes.count].iter().all(|range| splice(changes, file.fd, *range).is_some())
}

/// Puts the lines that the kernel has now in the place of those that touch the range. None: everything is to be read.
fn splice(changes: &mut Changes, maps: i64, (start, end): (u64, u64)) -> Option<()> {
    let kept = scratch::kept_maps();
    let (mut from, mut to) = (None, changes.len);
    let (mut lowest, mut highest) = (start, end);
    each_line(&kept[..changes.len], |at, line| {
        let (line_start, line_end) = bounds(line);
        if line_end < start {
            return true;
        }
        from = from.or(Some(at));
        if line_start > end {
            to = at;
            return false;
        }
        (lowest, highest) = (lowest.min(line_start), highest.max(line_end));
        true
    });
    let from = from.unwrap_or(changes.len);
    let to = to.max(from);
    let fresh = scratch::maps_text();
    let mut len = 0;
    let mut at = lowest;
    while at < highest {
        let (line, next) = fresh.get_mut(len..len + NAME + LINE)?.split_at_mut(LINE);
        let mut query = Query {
            size: core::mem::size_of::<Query>() as u64,
            flags: COVERING_OR_NEXT,
            address: at,
            name_size: NAME as u32,
            name: next.as_mut_ptr() as u64,
            ..Default::default()
        };
        // SAFETY: the kernel writes the query, and a name of at most so many bytes.
        match unsafe { syscall!(nr::IOCTL, maps, PROCMAP_QUERY, &raw mut query) } {
            0 => (),
            ENOENT => break,
            _ => {
                changes.is_unheard_of = true;
                return None;
            }
        }
        if query.start >= highest {
            break;
        }
        let head = write(line, &query);
        let name = (query.name_size as usize).saturating_sub(1);
        if next[..name].contains(&b'\n') {
            return None;
        }
        fresh.copy_within(len + LINE..len + LINE + name, len + head);
        len += head + name;
        fresh[len] = b'\n';
        len += 1;
        at = query.end;
    }
    let now = from + len + (changes.len - to);
    if now > kept.len() {
        return None;
    }
    kept.copy_within(to..changes.len, from + len);
    kept[from..from + len].copy_from_slice(&fresh[..len]);
    changes.len = now;
    Some(())
}

/// Start and end in a line of the text.
fn bounds(line: &[u8]) -> (u64, u64) {
    let number = |digits: &[u8]| {
        digits.iter().map_while(|digit| (*digit as char).to_digit(16)).fold(0, |n, digit| n << 4 | digit as u64)
    };
    let dash = line.iter().position(|byte| *byte == b'-').unwrap_or(0);
    (number(&line[..dash]), number(line.get(dash + 1..).unwrap_or(&[])))
}

/// Writes a line up to its name; how long that is.
fn write(line: &mut [u8], query: &Query) -> usize {
    let mut n = 0;
    let mut put = |byte: u8| {
        line[n] = byte;
        n += 1;
    };
    let hex = |put: &mut dyn FnMut(u8), value: u64, digits: u32, after: u8| {
        let digits = digits.max((67 - (value | 1).leading_zeros()) / 4);
        for place in (0..digits).rev() {
            put(b"0123456789abcdef"[(value >> (4 * place) & 15) as usize]);
        }
        put(after);
    };
    hex(&mut put, query.start, 12, b'-');
    hex(&mut put, query.end, 12, b' ');
    for (bit, letter) in READ_WRITE_EXECUTE {
        put(if query.vma_flags & bit != 0 { letter } else { b'-' });
    }
    put(if query.vma_flags & SHARED != 0 { b's' } else { b'p' });
    put(b' ');
    hex(&mut put, query.offset, 8, b' ');
    hex(&mut put, query.major as u64, 2, b':');
    hex(&mut put, query.minor as u64, 2, b' ');
    let mut digits = [0u8; 24];
    let len = crate::text::join(&mut digits, &[], Some(query.inode)) - 1;
    digits[..len].iter().for_each(|digit| put(*digit));
    put(b' ');
    n
}
