//! What a cold resume must know of a descriptor: its name, mode and offset, put into the commit after each change; and of the
//! working directory. What it must know of objects without a name see [`crate::unnamed`].

use crate::calls::{directory, own_pidfds, owners};
use crate::proc;
use crate::state::{object, Engine};
use crate::sys::{err, nr, syscall};
use crate::unnamed;
use outlast_image::descriptor::{descriptor_kind as kind, Descriptor};

/// Puts the descriptors that changed since the last commit into the record being built.
pub fn changed(e: &mut Engine) {
    if e.directory_dirty {
        directory::describe(e);
    }
    if e.fds.take_many_touched() {
        (0..e.fds.end()).for_each(|fd| one(e, fd));
    }
    while let Some(fd) = e.fds.next_touched() {
        one(e, fd);
    }
    e.fds.grow_up();
}

fn one(e: &mut Engine, fd: i32) {
    unnamed::forget(e, fd);
    if e.fds.fresh.get(fd).is_some() {
        put_fresh(e, fd);
    } else if e.fds.is_open(fd) {
        put(e, fd);
    } else if e.store().object(object::DESCRIPTOR, fd as u64, &mut []).is_some() {
        e.store().delete(object::DESCRIPTOR, fd as u64);
    }
}

fn put_fresh(e: &mut Engine, fd: i32) {
    let Some(fresh) = e.fds.fresh.get(fd).copied() else { return };
    let d = Descriptor {
        fd: fd as u32,
        kind: kind::REGULAR,
        flags: fresh.flags,
        fd_flags: fresh.fd_flags,
        offset: if e.fds.is_unmoved(fd) { 0 } else { offset(fd) },
        dev: fresh.dev,
        inode: fresh.inode,
        path_len: fresh.path().len() as u32,
        file: e.fds.origins.of(fd).file,
        ..Default::default()
    };
    e.store().put2(object::DESCRIPTOR, fd as u64, bytemuck::bytes_of(&d), fresh.path());
}

/// 0: it has none.
fn offset(fd: i32) -> u64 {
    // SAFETY: lseek(fd, 0, SEEK_CUR) has no effect.
    let offset = unsafe { syscall!(nr::LSEEK, fd, 0, 1) };
    if err::is(offset) {
        0
    } else {
        offset as u64
    }
}

fn put(e: &mut Engine, fd: i32) {
    let kind = e.fds.kind(fd);
    let mut d = Descriptor { fd: fd as u32, kind, ..Default::default() };
    let mut path = [0u8; 4096];
    // SAFETY: calls without effect that write into locals.
    unsafe {
        d.flags = syscall!(nr::FCNTL, fd, 3).max(0) as u32;
        d.fd_flags = syscall!(nr::FCNTL, fd, 1).max(0) as u32;
        let mut st = [0u64; 18];
        if syscall!(nr::FSTAT, fd, st.as_mut_ptr()) == 0 {
            (d.dev, d.inode) = (st[0], st[1]);
            if e.kernel.owners != 0 {
                (d.owner_kind, d.owner) = owners::of(e, fd);
            }
            if e.kernel.own_pidfds != 0 {
                d.own = own_pidfds::number_of(fd, d.inode);
            }
        }
        if kind == kind::REGULAR {
            d.offset = offset(fd);
        }
        let may_have_name = kind == kind::PIPE && !e.fds.origins.of(fd).is_stream();
        if matches!(kind, kind::REGULAR | kind::DIRECTORY | kind::CHARACTER | kind::TERMINAL | kind::BLOCK)
            || may_have_name
        {
            let n = proc::link(fd, &mut path).len();
            // Of a pipe that has none /proc makes one up.
            d.path_len = if may_have_name && path[0] != b'/' { 0 } else { n as u32 };
        }
    }
    let mut rest = [0; unnamed::LONGEST];
    let len = unnamed::describe(e, fd, &mut d, &mut rest);
    let path = if len != 0 { &rest[..len] } else { &path[..d.path_len as usize] };
    e.store().put2(object::DESCRIPTOR, fd as u64, bytemuck::bytes_of(&d), path);
}
