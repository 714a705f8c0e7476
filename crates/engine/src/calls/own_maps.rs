//! /proc/self/maps as the program knows its mappings.
//!
//! The engine's own mappings are none of the program's business, and a tracker by signals takes permissions away and cuts
//! mappings into pieces; but programs do look: glibc finds the extent of the main thread's stack there, collectors their
//! roots. Who opens the file gets a copy, made at that moment.

use crate::regions::{self, Mapped};
use crate::shared_memory;
use crate::state::Engine;
use crate::sys::{err, nr, syscall};
use crate::text;
use crate::thread::Thread;
use crate::user;
use outlast_image::region::{backing, region_flag};

const O_ACCMODE: u64 = 3;
const O_CLOEXEC: u64 = 0o2000000;
const MFD_CLOEXEC: u64 = 1;
/// Column of the path in a line.
const PATH: usize = 73;

/// The descriptor of a copy, if `path` with `flags` opens the list of the program's own mappings.
pub fn open(e: &Engine, t: &Thread, path: u64, flags: u64) -> Option<i64> {
    if path == 0 || flags & O_ACCMODE != 0 || !is_own(path, e.kernel.pid, t.tid) {
        return None;
    }
    let close = if flags & O_CLOEXEC != 0 { MFD_CLOEXEC } else { 0 };
    // SAFETY: makes a file of the program's and fills it.
    unsafe {
        let fd = syscall!(nr::MEMFD_CREATE, c"maps".as_ptr(), close);
        if err::is(fd) {
            return None;
        }
        if write(e, fd) && syscall!(nr::LSEEK, fd, 0, 0) == 0 {
            return Some(fd);
        }
        syscall!(nr::CLOSE, fd);
        None
    }
}

/// Is it one of the names of that file?
fn is_own(path: u64, pid: u32, tid: u32) -> bool {
    let mut given = [0u8; 48];
    if user::read::<[u8; 6]>(path).is_some_and(|start| start != *b"/proc/") {
        return false;
    }
    let Some(len) = user::read_path(path, &mut given) else { return false };
    let Some(middle) = given[..len].strip_prefix(b"/proc/").and_then(|rest| rest.strip_suffix(b"/maps")) else {
        return false;
    };
    let number = |n: u32, prefix: &[u8], text: &[u8]| {
        let mut buf = [0u8; 32];
        let len = text::join(&mut buf, &[prefix], Some(n as u64));
        buf[..len - 1] == *text
    };
    matches!(middle, b"self" | b"thread-self") || number(pid, b"", middle) || number(tid, b"self/task/", middle)
}

fn write(e: &Engine, fd: i64) -> bool {
    let (mut buf, mut used, mut whole) = ([0u8; 8192], 0, true);
    let flush = |bytes: &[u8]| {
        let mut done = 0;
        while done < bytes.len() {
            // SAFETY: the kernel reads the bytes.
            let n = unsafe { syscall!(nr::WRITE, fd, bytes[done..].as_ptr(), bytes.len() - done) };
            if n <= 0 {
                return false;
            }
            done += n as usize;
        }
        true
    };
    regions::for_each(regions::read_maps(), (e.kernel.start_brk, e.kernel.brk), |m| {
        if used + PATH + m.path.len() + 32 > buf.len() {
            whole &= flush(&buf[..used]);
            used = 0;
        }
        used += line(&mut buf[used..], &m);
    });
    whole && flush(&buf[..used])
}

/// Writes the line of a region; its length.
fn line(to: &mut [u8], m: &Mapped<'_>) -> usize {
    let r = &m.region;
    let file = !matches!(r.backing, backing::ANONYMOUS | backing::HEAP | backing::STACK);
    let shared = matches!(
        r.backing,
        backing::SHARED_ANONYMOUS | backing::SHARED_FILE | backing::OWN_FILE | backing::SEGMENT | backing::CONTEXT
    );
    let (offset, dev, inode) = if file { (r.offset, r.dev, r.inode) } else { (0, 0, 0) };
    let mut n = 0;
    let mut put = |bytes: &[u8]| {
        to[n..n + bytes.len()].copy_from_slice(bytes);
        n += bytes.len();
        n
    };
    let (mut digits, bit) = ([0u8; 16], |bit, c| if r.prot & bit != 0 { c } else { b'-' });
    put(hex(&mut digits, r.start, 8));
    put(b"-");
    put(hex(&mut digits, r.end, 8));
    put(&[b' ', bit(1, b'r'), bit(2, b'w'), bit(4, b'x'), if shared { b's' } else { b'p' }, b' ']);
    put(hex(&mut digits, offset, 8));
    put(b" ");
    put(hex(&mut digits, dev >> 32, 2));
    put(b":");
    put(hex(&mut digits, dev & 0xffff_ffff, 2));
    put(b" ");
    let mut decimal = [0u8; 24];
    let len = text::join(&mut decimal, &[], Some(inode));
    put(&decimal[..len - 1]);
    let at = put(b" ");
    let name: &[u8] = match r.backing {
        backing::HEAP => b"[heap]",
        backing::STACK => b"[stack]",
        _ if m.path == shared_memory::CONVERTED => b"/dev/zero",
        _ => m.path,
    };
    if !name.is_empty() {
        put(&[b' '; PATH][..PATH.saturating_sub(at)]);
        put(name);
        if r.flags & region_flag::DELETED != 0 {
            put(b" (deleted)");
        }
    }
    put(b"\n")
}

/// The number in hexadecimal, with at least `least` digits.
fn hex(to: &mut [u8; 16], number: u64, least: usize) -> &[u8] {
    for (i, digit) in to.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(number >> (60 - 4 * i)) as usize & 15];
    }
    let leading = (number.leading_zeros() / 4) as usize;
    &to[leading.min(16 - least)..]
}
