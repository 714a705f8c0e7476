//! The program's mapped regions, read from /proc/self/maps when they may have changed since the last commit.

use crate::control::fail;
use crate::own_files;
use crate::proc;
use crate::scratch;
use crate::shared_memory;
use crate::state::engine;
use crate::sys::{err, nr, syscall};
use crate::tracker::RealMap;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END};
use outlast_image::region::{backing, region_flag, Region};

/// One line of the map, paths by reference.
#[derive(Clone, Copy)]
pub struct Mapped<'a> {
    pub region: Region,
    pub path: &'a [u8],
}

/// Reads the whole map of the process into the scratch buffer.
pub fn read_maps() -> &'static [u8] {
    let buf = scratch::maps_text();
    // SAFETY: plain reads into the scratch buffer.
    unsafe {
        let file = match proc::open(c"/proc/self/maps", 0) {
            Ok(file) => file,
            Err(r) => fail!(r),
        };
        let mut n = 0;
        loop {
            if n == buf.len() {
                fail!(err::ENOMEM);
            }
            let r = syscall!(nr::READ, file.fd, buf.as_mut_ptr().add(n), buf.len() - n);
            if r < 0 {
                fail!(r);
            }
            if r == 0 {
                break;
            }
            n += r as usize;
        }
        &buf[..n]
    }
}

fn hex(s: &[u8], at: &mut usize) -> u64 {
    let mut v = 0;
    while let Some(d) = s.get(*at).and_then(|c| (*c as char).to_digit(16)) {
        v = v << 4 | d as u64;
        *at += 1;
    }
    v
}

/// Calls `f` for every region that is not the engine's, in ascending order, as the program has it.
pub fn for_each<'a>(text: &'a [u8], heap: (u64, u64), f: impl FnMut(Mapped<'a>)) {
    if shared_memory::is_on() {
        let mut shown = shared_memory::Shown::new(f);
        for_each_tracked(text, heap, |m| shown.region(m));
        return shown.end();
    }
    for_each_tracked(text, heap, f);
}

fn for_each_tracked<'a>(text: &'a [u8], heap: (u64, u64), f: impl FnMut(Mapped<'a>)) {
    // SAFETY: only looks which tracker there is.
    if unsafe { engine() }.tracker.guards_kernel_writes() {
        let mut real = RealMap::new(f);
        for_each_mapping(text, heap, |shown| real.line(shown));
        return real.end();
    }
    for_each_mapping(text, heap, f);
}

/// Calls `f` with the place of every line, and the line, until it says no.
pub fn each_line(text: &[u8], mut f: impl FnMut(usize, &[u8]) -> bool) {
    let mut at = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if !f(at, line) {
            return;
        }
        at += line.len();
    }
}

/// Calls `f` for every line, the engine's as well: start, end, and what may be done there (`rw-p`).
pub fn each_range(text: &[u8], mut f: impl FnMut(u64, u64, &[u8])) {
    for line in text.split(|&b| b == b'\n').filter(|l| l.len() > 30) {
        let mut at = 0;
        let start = hex(line, &mut at);
        at += 1;
        let end = hex(line, &mut at);
        f(start, end, &line[at + 1..at + 5]);
    }
}

/// Calls `f` for every line that is not the engine's, as the kernel has it.
pub fn for_each_mapping<'a>(text: &'a [u8], heap: (u64, u64), mut f: impl FnMut(Mapped<'a>)) {
    for line in text.split(|&b| b == b'\n').filter(|l| l.len() > 30) {
        let mut at = 0;
        let start = hex(line, &mut at);
        at += 1;
        let end = hex(line, &mut at);
        at += 1;
        if (ENGINE_BASE..ENGINE_END).contains(&start) {
            continue;
        }
        let bits = &line[at..at + 4];
        let prot = (bits[0] == b'r') as u32 | ((bits[1] == b'w') as u32) << 1 | ((bits[2] == b'x') as u32) << 2;
        let shared = bits[3] == b's';
        at += 5;
        let offset = hex(line, &mut at);
        at += 1;
        let major = hex(line, &mut at);
        at += 1;
        let dev = major << 32 | hex(line, &mut at);
        at += 1;
        let mut inode = 0u64;
        while line.get(at).is_some_and(u8::is_ascii_digit) {
            inode = inode.wrapping_mul(10).wrapping_add((line[at] - b'0') as u64);
            at += 1;
        }
        while line.get(at) == Some(&b' ') {
            at += 1;
        }
        let mut path = line.get(at..).unwrap_or(&[]);
        let mut flags = 0;
        if let Some(p) = path.strip_suffix(b" (deleted)") {
            path = p;
            flags |= region_flag::DELETED;
        }
        let kind = if path == b"[stack]" {
            flags |= region_flag::GROWSDOWN;
            backing::STACK
        } else if path.starts_with(b"[v") {
            backing::KERNEL
        } else if start >= heap.0 && end <= (heap.1 + 4095) & !4095 && inode == 0 {
            backing::HEAP
        } else if path.starts_with(b"/memfd:outlast-store") || is_store(path) {
            // A lazily restored region: anonymous memory as far as the program is concerned.
            backing::ANONYMOUS
        } else if shared && flags & region_flag::DELETED != 0 && is_segment(path) {
            backing::SEGMENT
        } else if shared && flags & region_flag::DELETED != 0 && path == b"/[aio]" {
            backing::CONTEXT
        } else if inode != 0 && path.starts_with(b"/") {
            match (shared, path.starts_with(b"/dev/zero")) {
                (true, true) => backing::SHARED_ANONYMOUS,
                (true, false) if flags & region_flag::DELETED != 0 && own_files::is_one(dev, inode) => {
                    backing::OWN_FILE
                }
                (true, false) => backing::SHARED_FILE,
                (false, _) => backing::PRIVATE_FILE,
            }
        } else if shared {
            backing::SHARED_ANONYMOUS
        } else {
            backing::ANONYMOUS
        };
        if matches!(kind, backing::ANONYMOUS | backing::HEAP | backing::STACK) {
            path = &[];
        }
        let region = Region { start, end, prot, backing: kind, flags, path_len: path.len() as u32, offset, inode, dev };
        f(Mapped { region, path });
    }
}

/// The kernel names segments by their keys.
fn is_segment(path: &[u8]) -> bool {
    path.strip_prefix(b"/SYSV").is_some_and(|key| key.len() == 8 && key.iter().all(u8::is_ascii_hexdigit))
}

fn is_store(path: &[u8]) -> bool {
    let own = crate::state::store_path();
    !own.is_empty() && path == own
}

/// Encodes the regions as the object of a commit: for each a `Region`, then its path.
pub fn encode(text: &[u8], heap: (u64, u64)) -> &'static mut [u8] {
    let out = scratch::regions_object();
    let mut n = 0;
    let mut known = Known::anew();
    for_each(text, heap, |m| {
        known.add(m.region.start, m.region.end);
        let head = bytemuck::bytes_of(&m.region);
        if n + head.len() + m.path.len() > out.len() {
            fail!(err::ENOMEM);
        }
        out[n..n + head.len()].copy_from_slice(head);
        n += head.len();
        out[n..n + m.path.len()].copy_from_slice(m.path);
        n += m.path.len();
    });
    &mut out[..n]
}

/// The addresses that the regions committed last cover, in ascending order; ends with an empty range.
struct Known {
    count: usize,
}

impl Known {
    fn anew() -> Known {
        scratch::known_ranges()[0] = (0, 0);
        Known { count: 0 }
    }

    fn add(&mut self, start: u64, end: u64) {
        let ranges = scratch::known_ranges();
        if self.count > 0 && ranges[self.count - 1].1 == start {
            ranges[self.count - 1].1 = end;
        } else if self.count + 1 < ranges.len() {
            (ranges[self.count], ranges[self.count + 1]) = ((start, end), (0, 0));
            self.count += 1;
        }
    }
}

/// Does `start..end` lie in the regions that were committed last? The kernel extends what grows downwards without being
/// asked: pages that were never stored tell.
pub fn are_known(start: u64, end: u64) -> bool {
    scratch::known_ranges().iter().take_while(|range| range.1 != 0).any(|&(a, b)| a <= start && end <= b)
}

/// The regions of an encoded object; ends at the first entry that does not fit (the object is untrusted).
pub struct Regions<'a> {
    rest: &'a [u8],
}

impl<'a> Regions<'a> {
    pub fn new(object: &'a [u8]) -> Self {
        Regions { rest: object }
    }
}

impl<'a> Iterator for Regions<'a> {
    type Item = Mapped<'a>;

    fn next(&mut self) -> Option<Mapped<'a>> {
        let (head, rest) = self.rest.split_at_checked(core::mem::size_of::<Region>())?;
        let region: Region = bytemuck::pod_read_unaligned(head);
        let (path, rest) = rest.split_at_checked(region.path_len as usize)?;
        self.rest = rest;
        (region.start < region.end).then_some(Mapped { region, path })
    }
}

/// Is there memory besides the engine's that the program can write to, and others share?
pub fn any_shared_writable(text: &[u8]) -> bool {
    let mut any = false;
    for_each_mapping(text, (0, 0), |m| {
        let of_others = [backing::SHARED_FILE, backing::SHARED_ANONYMOUS, backing::SEGMENT, backing::CONTEXT];
        any |= of_others.contains(&m.region.backing) && m.region.prot & 2 != 0;
    });
    any
}
