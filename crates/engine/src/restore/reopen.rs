//! After a cold resume the descriptor table is empty: files and pipes that have one come back by name, objects that are the program's alone are made anew
//! ([`crate::unnamed`]), terminals and pipes on 0, 1 and 2 are those of whoever resumes, connections are found closed by their other end.

use crate::call_filters;
use crate::calls::own_pidfds;
use crate::control::{degrade, is_degraded};
use crate::descriptors::HIGHEST;
use crate::own_faults;
use crate::own_files;
use crate::program_rings;
use crate::scratch;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use crate::unnamed;
use outlast_image::control::other_state;
use outlast_image::degradation::Degradation;
use outlast_image::descriptor::{descriptor_kind as kind, unnamed_kind, Descriptor};

const O_CREAT_EXCL_TRUNC: u32 = 0o100 | 0o200 | 0o1000;
const O_CLOEXEC: u64 = 0o2000000;

/// Opens everything that was open at the commit, for a process whose state is another's in this way.
pub fn all(e: &mut Engine, other: u32) {
    // A copy's standard streams are those that it was given.
    let has_streams = other == other_state::COPY;
    // Of a program that goes back they stay what they are where children may have them, too, and where a filter of the program's might not
    // let others be made.
    let may_be_others = other == other_state::OLDER && is_degraded(Degradation::Children);
    if !may_be_others && !call_filters::exist() {
        unnamed::make_all(e);
    }
    for fd in 0..HIGHEST as i32 {
        if !e.fds.is_open(fd) {
            continue;
        }
        if unnamed::is_made(fd) {
            continue;
        }
        if !one(e, fd, has_streams && fd < 3) {
            degrade(Degradation::DescriptorLost);
            stand_in(fd);
        }
        if fd < 3 {
            // They may be others than the commit describes, and are to be found again if this is to be done again.
            e.fds.opened(fd.into());
        }
    }
}

fn one(e: &mut Engine, fd: i32, is_given: bool) -> bool {
    let head = core::mem::size_of::<Descriptor>();
    let buf = scratch::object_buffer();
    let n = e.store().object(object::DESCRIPTOR, fd as u64, buf).unwrap_or(0);
    let d: Descriptor = if n >= head { bytemuck::pod_read_unaligned(&buf[..head]) } else { Descriptor::default() };
    let file = matches!(d.kind, kind::REGULAR | kind::DIRECTORY | kind::BLOCK | kind::CHARACTER);
    let is_named_pipe = d.unnamed == unnamed_kind::NAMED_PIPE;
    // SAFETY: opens with this process's own credentials; the path ends with a NUL that is put there.
    unsafe {
        let mut st = [0u64; 18];
        let present = syscall!(nr::FSTAT, fd, st.as_mut_ptr()) == 0;
        if present && is_given {
            return true;
        }
        if present && (st[0], st[1]) == (d.dev, d.inode) && d.kind != kind::REGULAR {
            // Whoever resumes had it from the same source as the program.
            return true;
        }
        if program_rings::reopen(e, fd) {
            return true;
        }
        if own_pidfds::is_own(&d) || own_faults::is_one(&d) {
            // It is opened again when the process is what it will be.
            stand_in(fd);
            return true;
        }
        if !file && !is_named_pipe {
            return present && (0..3).contains(&fd);
        }
        let path = &mut buf[head..];
        let len = (d.path_len as usize).min(n - head).min(4095);
        path[len] = 0;
        if len == 0 || path[0] != b'/' {
            return false;
        }
        let flags = d.flags & !O_CREAT_EXCL_TRUNC;
        let r = if is_named_pipe {
            named_pipe(path, flags)
        } else if let Some(again) = own_files::open_again(e, &d) {
            // It may be another file than the commit describes.
            e.fds.changed(fd);
            again
        } else {
            syscall!(nr::OPENAT, -100i64, path.as_ptr(), flags as u64 | O_CLOEXEC, 0)
        };
        if err::is(r) {
            return false;
        }
        if r != fd as i64 {
            syscall!(nr::DUP3, r, fd, if d.fd_flags & 1 != 0 { O_CLOEXEC } else { 0 });
            syscall!(nr::CLOSE, r);
        } else if d.fd_flags & 1 == 0 {
            syscall!(nr::FCNTL, fd, 2, 0);
        }
        if d.kind == kind::REGULAR {
            syscall!(nr::LSEEK, fd, d.offset, 0);
        }
        if is_named_pipe && unnamed::held_something(e, fd) && is_empty(fd) {
            degrade(Degradation::DescriptorLost);
        }
        true
    }
}

/// Opens a pipe that has a name, whether or not there is somebody at the other end.
unsafe fn named_pipe(path: &[u8], flags: u32) -> i64 {
    const O_RDWR: u64 = 2;
    const O_NONBLOCK: u64 = 0o4000;
    const F_SETFL: u64 = 4;
    const S_IFMT: u64 = 0o170000;
    const S_IFIFO: u64 = 0o010000;
    let open = |flags: u64| syscall!(nr::OPENAT, -100i64, path.as_ptr(), flags | O_NONBLOCK | O_CLOEXEC, 0);
    // Who writes can only open it while somebody reads.
    let reader = open(O_RDWR);
    let r = open(flags.into());
    syscall!(nr::CLOSE, reader);
    let mut st = [0u64; 18];
    if !err::is(r) && (syscall!(nr::FSTAT, r, st.as_mut_ptr()) != 0 || st[3] & S_IFMT != S_IFIFO) {
        syscall!(nr::CLOSE, r);
        return err::EINVAL;
    }
    syscall!(nr::FCNTL, r, F_SETFL, flags);
    r
}

/// Is there nothing to be read?
fn is_empty(fd: i32) -> bool {
    const FIONREAD: u64 = 0x541b;
    let mut waiting = 0i32;
    // SAFETY: the kernel writes four bytes.
    unsafe { syscall!(nr::IOCTL, fd, FIONREAD, &raw mut waiting) };
    waiting == 0
}

/// A socket whose peer is gone: reads end, writes fail, as after a broken connection.
fn stand_in(fd: i32) {
    let mut pair = [0i32; 2];
    // SAFETY: makes a pair and keeps one end under the old number.
    unsafe {
        if syscall!(nr::SOCKETPAIR, 1, 1, 0, pair.as_mut_ptr()) == 0 {
            if pair[0] != fd {
                syscall!(nr::DUP3, pair[0], fd, 0);
                syscall!(nr::CLOSE, pair[0]);
            }
            if pair[1] != fd {
                syscall!(nr::CLOSE, pair[1]);
            }
        }
    }
}
