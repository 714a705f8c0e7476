//! A file system in memory. Names and contents are resources, which outlive an instance of the service; what is in its own
//! memory follows from them, but for open files, which the clients remember.

mod tree;

use std::collections::HashMap;

use outlast_glue_rt::{Buffer, Lent, Resources, Stop};

use crate::stubs::fs::Service;

use tree::{Node, Tree, ROOT};

pub const CREATE: u32 = 1;
/// With CREATE: not if it is there already.
pub const EXCLUSIVE: u32 = 2;
pub const TRUNCATE: u32 = 4;
/// What is written goes behind the end.
pub const APPEND: u32 = 8;
/// A folder, not a file.
pub const FOLDER: u32 = 16;
const FLAGS: u32 = 31;

/// Bytes that come with a call, each way.
pub const PIECE: usize = 4096;

#[derive(Clone, Copy)]
struct Open {
    inode: u64,
    /// The folder that names are meant below.
    base: u64,
    offset: u64,
    flags: u32,
}

#[derive(Clone, Default)]
pub struct Files {
    last: u64,
    open: HashMap<u64, Open>,
    tree: Option<Tree>,
}

impl Files {
    fn open(&self, file: u64) -> Result<Open, Stop> {
        self.open.get(&file).copied().ok_or(Stop::Errno(libc::EBADF))
    }

    fn tree(&mut self, resources: &Resources) -> &mut Tree {
        self.tree.get_or_insert_with(|| Tree::read(resources))
    }

    /// An open file, which must not be a folder.
    fn file(&mut self, resources: &Resources, file: u64) -> Result<Open, Stop> {
        let open = self.open(file)?;
        match self.tree(resources).node(open.inode)?.folder {
            true => Err(Stop::Errno(libc::EISDIR)),
            false => Ok(open),
        }
    }

    /// What is there from the offset on, which then is behind it.
    fn read(&mut self, resources: &mut Resources, file: u64, most: usize) -> Result<Vec<u8>, Stop> {
        let open = self.file(resources, file)?;
        let data = resources.read(open.inode, open.offset, most)?;
        self.moved(file, open.offset + data.len() as u64);
        Ok(data)
    }

    /// How far the offset has moved.
    fn write(&mut self, resources: &mut Resources, file: u64, data: &[u8]) -> Result<i64, Stop> {
        let open = self.file(resources, file)?;
        if data.is_empty() {
            // Where it would be appended does not matter either: the offset stays.
            return Ok(0);
        }
        let at = if open.flags & APPEND != 0 { resources.length(open.inode)? } else { open.offset };
        resources.write(open.inode, at, data)?;
        Ok(self.moved(file, at + data.len() as u64))
    }

    fn moved(&mut self, file: u64, to: u64) -> i64 {
        let Some(open) = self.open.get_mut(&file) else { return 0 };
        let moved = to.wrapping_sub(open.offset) as i64;
        open.offset = to;
        moved
    }

    /// What the path names, made if that is wanted.
    fn find(&mut self, resources: &mut Resources, base: u64, path: &[u8], flags: u32) -> Result<u64, Stop> {
        let tree = self.tree(resources);
        let (folder, name) = tree.resolve(base, path)?;
        let wants_folder = flags & FOLDER != 0;
        if let Some(inode) = tree.child(folder, name) {
            let node = tree.node(inode)?;
            let refused = match (node.folder, wants_folder) {
                _ if flags & (CREATE | EXCLUSIVE) == CREATE | EXCLUSIVE => Some(libc::EEXIST),
                (true, false) => Some(libc::EISDIR),
                (false, true) => Some(libc::ENOTDIR),
                _ => None,
            };
            if let Some(errno) = refused {
                return Err(Stop::Errno(errno));
            }
            if flags & TRUNCATE != 0 && !node.folder {
                resources.truncate(inode, 0)?;
            }
            return Ok(inode);
        }
        if flags & CREATE == 0 {
            return Err(Stop::Errno(libc::ENOENT));
        }
        let node = Node { parent: folder, folder: wants_folder, name: name.to_vec() };
        let inode = resources.fresh();
        resources.create(inode, &node.to_bytes())?;
        tree.put(inode, node);
        Ok(inode)
    }
}

impl Service for Files {
    fn fs_split(
        &mut self,
        resources: &mut Resources,
        _client: u32,
        parent: u64,
        name: &[u8],
        flags: u32,
        inode: i64,
        offset: i64,
    ) -> Result<(u64, u64), Stop> {
        let base = if parent == 0 { ROOT } else { self.open(parent)?.inode };
        let (again, offset) = match (u64::try_from(inode), u64::try_from(offset)) {
            (Ok(inode), Ok(offset)) if flags & !FLAGS == 0 => (inode, offset),
            _ => return Err(Stop::Errno(libc::EINVAL)),
        };
        // Made again it is the same file, whatever its name is now, and even if it is gone.
        let inode = if again != 0 { again } else { self.find(resources, base, name, flags)? };
        self.last += 1;
        self.open.insert(self.last, Open { inode, base, offset, flags });
        Ok((self.last, inode))
    }

    fn fs_read(
        &mut self,
        resources: &mut Resources,
        _client: u32,
        file: u64,
        most: u32,
    ) -> Result<(i32, Vec<u8>, u32), Stop> {
        let data = self.read(resources, file, PIECE.min(most as usize))?;
        let got = data.len() as u32;
        Ok((got as i32, data, got))
    }

    fn fs_write(
        &mut self,
        resources: &mut Resources,
        _client: u32,
        file: u64,
        data: &[u8],
    ) -> Result<(i32, i64), Stop> {
        Ok((data.len() as i32, self.write(resources, file, data)?))
    }

    fn fs_get(
        &mut self,
        resources: &mut Resources,
        _client: u32,
        file: u64,
        data: &mut Lent<'_>,
        most: u32,
    ) -> Result<(i32, u32), Stop> {
        let bytes = self.read(resources, file, Buffer::SIZE.min(most as usize))?;
        data.write(0, &bytes)?;
        Ok((bytes.len() as i32, bytes.len() as u32))
    }

    fn fs_put(
        &mut self,
        resources: &mut Resources,
        _client: u32,
        file: u64,
        data: &mut Lent<'_>,
        length: u32,
    ) -> Result<(i32, i64), Stop> {
        let bytes = data.read(0, length as usize)?;
        Ok((length as i32, self.write(resources, file, &bytes)?))
    }

    fn fs_seek(
        &mut self,
        resources: &mut Resources,
        _client: u32,
        file: u64,
        whence: u32,
        to: i64,
    ) -> Result<(i64, i64), Stop> {
        let open = self.file(resources, file)?;
        let from = match whence {
            0 => 0,
            1 => open.offset,
            2 => resources.length(open.inode)?,
            _ => return Err(Stop::Errno(libc::EINVAL)),
        };
        let there = i64::try_from(from).ok().and_then(|from| from.checked_add(to)).filter(|there| *there >= 0);
        let there = there.ok_or(Stop::Errno(libc::EINVAL))?;
        Ok((there, self.moved(file, there as u64)))
    }

    fn fs_truncate(&mut self, resources: &mut Resources, _client: u32, file: u64, size: u64) -> Result<i32, Stop> {
        let open = self.file(resources, file)?;
        resources.truncate(open.inode, size)?;
        Ok(0)
    }

    fn fs_rename(&mut self, resources: &mut Resources, _client: u32, file: u64, name: &[u8]) -> Result<i32, Stop> {
        let open = self.open(file)?;
        let tree = self.tree(resources);
        let old = tree.node(open.inode)?.clone();
        let (parent, name) = tree.resolve(open.base, name)?;
        if name.is_empty() {
            return Err(Stop::Errno(libc::EINVAL));
        }
        let replaced = tree.child(parent, name).filter(|other| *other != open.inode);
        if old.folder && tree.within(parent, open.inode) {
            return Err(Stop::Errno(libc::EINVAL));
        }
        if let Some(replaced) = replaced {
            let other = tree.node(replaced)?;
            match (old.folder, other.folder) {
                // It is where it comes from.
                _ if tree.within(open.inode, replaced) => return Err(Stop::Errno(libc::ENOTEMPTY)),
                (true, false) => return Err(Stop::Errno(libc::ENOTDIR)),
                (false, true) => return Err(Stop::Errno(libc::EISDIR)),
                _ if other.folder && !tree.is_empty(replaced) => return Err(Stop::Errno(libc::ENOTEMPTY)),
                _ => resources.remove(replaced)?,
            }
        }
        let node = Node { parent, name: name.to_vec(), ..old };
        resources.rename(open.inode, &node.to_bytes())?;
        // Nothing can fail from here on.
        if let Some(replaced) = replaced {
            tree.remove(replaced);
        }
        tree.remove(open.inode);
        tree.put(open.inode, node);
        Ok(0)
    }

    fn fs_remove(&mut self, resources: &mut Resources, _client: u32, file: u64) -> Result<i32, Stop> {
        let open = self.open(file)?;
        let tree = self.tree(resources);
        let node = tree.node(open.inode)?;
        if open.inode == ROOT {
            return Err(Stop::Errno(libc::EBUSY));
        }
        if node.folder && !tree.is_empty(open.inode) {
            return Err(Stop::Errno(libc::ENOTEMPTY));
        }
        resources.remove(open.inode)?;
        tree.remove(open.inode);
        Ok(0)
    }

    fn fs_status(&mut self, resources: &mut Resources, _client: u32, file: u64) -> Result<(i32, u64, u32), Stop> {
        let open = self.open(file)?;
        let folder = self.tree(resources).node(open.inode)?.folder;
        let size = if folder { 0 } else { resources.length(open.inode)? };
        Ok((0, size, u32::from(folder)))
    }

    fn fs_list(
        &mut self,
        resources: &mut Resources,
        _client: u32,
        file: u64,
        most: u32,
        skip: u32,
    ) -> Result<(i32, Vec<u8>), Stop> {
        let open = self.open(file)?;
        let tree = self.tree(resources);
        if !tree.node(open.inode)?.folder {
            return Err(Stop::Errno(libc::ENOTDIR));
        }
        let (mut names, mut count) = (Vec::new(), 0);
        for (name, folder) in tree.names(open.inode).skip(skip as usize) {
            if names.len() + name.len() + 2 > PIECE.min(most as usize) {
                break;
            }
            names.extend_from_slice(name);
            names.extend_from_slice(if folder { b"/\0" } else { b"\0" });
            count += 1;
        }
        Ok((count, names))
    }

    fn fs_release(&mut self, _resources: &mut Resources, _client: u32, file: u64) -> Result<i32, Stop> {
        self.open.remove(&file).map(|_| 0).ok_or(Stop::Errno(libc::EBADF))
    }
}
