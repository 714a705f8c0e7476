//! A name in a folder, as the journal keeps it: the folder's path and identity, so that a name is set back there or nowhere.

use super::look::{self, Identity, Look};
use crate::own_descriptors::Passing;
use crate::sys::{nr, syscall};
use crate::user;

const AT_FDCWD: i64 = -100;
const O_PATH_DIRECTORY: u64 = 0o10000000 | 0o200000;
const O_CLOEXEC: u64 = 0o2000000;
const PATH_MAX: usize = 4096;
const NAME_MAX: usize = 255;

/// A name; its folder is open for a moment.
pub struct Place {
    folder: Passing,
    identity: Identity,
    path: [u8; PATH_MAX],
    path_len: usize,
    /// With a NUL behind it.
    name: [u8; NAME_MAX + 1],
    name_len: usize,
}

impl Place {
    /// The name that a call gives by a folder's descriptor and the address of a path. `None`: the call will fail.
    pub fn named(dir: i64, path: u64) -> Option<Place> {
        let mut text = [0u8; PATH_MAX + 1];
        let len = user::read_path(path, &mut text[..PATH_MAX])?;
        let end = text[..len].iter().rposition(|&b| b != b'/')? + 1;
        let start = text[..end].iter().rposition(|&b| b == b'/').map_or(0, |slash| slash + 1);
        let (mut name, name_len) = ([0u8; NAME_MAX + 1], end - start);
        if name_len > NAME_MAX || matches!(&text[start..end], b"." | b"..") {
            return None;
        }
        name[..name_len].copy_from_slice(&text[start..end]);
        // The folder's path ends with the slash; without one it is the folder itself.
        if start == 0 {
            text[0] = b'.';
        }
        text[start.max(1)] = 0;
        let folder = open_folder(dir, text.as_ptr())?;
        let mut place = Place {
            identity: look::of(folder.fd as i32).ok()?.identity,
            folder,
            path: [0; PATH_MAX],
            path_len: 0,
            name,
            name_len,
        };
        place.path_len = path_of(place.folder.fd as i32, &mut place.path)?;
        Some(place)
    }

    /// A name out of a journal, with what follows it. `None`: the folder is not the one it was.
    pub fn decode(bytes: &[u8]) -> Option<(Place, &[u8])> {
        const HEAD: usize = size_of::<Identity>() + 4;
        let head = bytes.get(..HEAD)?;
        let identity = bytemuck::pod_read_unaligned(&head[..HEAD - 4]);
        let [path_len, name_len] = [HEAD - 4, HEAD - 2].map(|at| u16::from_le_bytes([head[at], head[at + 1]]) as usize);
        let path_from = bytes.get(HEAD..HEAD + path_len).filter(|_| path_len < PATH_MAX)?;
        let name_from = bytes.get(HEAD + path_len..HEAD + path_len + name_len).filter(|_| name_len <= NAME_MAX)?;
        if name_from.contains(&b'/') || path_from.first() != Some(&b'/') {
            return None;
        }
        let (mut path, mut name) = ([0u8; PATH_MAX], [0u8; NAME_MAX + 1]);
        path[..path_len].copy_from_slice(path_from);
        name[..name_len].copy_from_slice(name_from);
        let folder = open_folder(AT_FDCWD, path.as_ptr())?;
        let is_same = look::of(folder.fd as i32).is_ok_and(|look| look.identity == identity);
        let place = Place { folder, identity, path, path_len, name, name_len };
        is_same.then_some((place, &bytes[HEAD + path_len + name_len..]))
    }

    /// The name as a journal keeps it.
    pub fn encode(&self, to: &mut Encoder) {
        to.put(bytemuck::bytes_of(&self.identity));
        to.put(&(self.path_len as u16).to_le_bytes());
        to.put(&(self.name_len as u16).to_le_bytes());
        to.put(&self.path[..self.path_len]);
        to.put(&self.name[..self.name_len]);
    }

    /// The folder's descriptor.
    pub fn folder(&self) -> i64 {
        self.folder.fd
    }

    /// The name in the folder, with a NUL behind it.
    pub fn name(&self) -> *const u8 {
        self.name.as_ptr()
    }

    /// What bears the name.
    pub fn look(&self) -> Option<Look> {
        look::at(self.folder.fd, self.name()).ok()
    }

    /// The identity of what bears the name.
    pub fn identity(&self) -> Identity {
        self.look().map_or(Identity::NONE, |look| look.identity)
    }
}

/// Puts an entry of a journal together.
pub struct Encoder {
    bytes: [u8; 2 * (PATH_MAX + NAME_MAX) + 256],
    len: usize,
}

impl Encoder {
    pub fn new() -> Encoder {
        Encoder { bytes: [0; 2 * (PATH_MAX + NAME_MAX) + 256], len: 0 }
    }

    /// Room is there for two names and what belongs to them.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn open_folder(dir: i64, path: *const u8) -> Option<Passing> {
    // SAFETY: the path ends with a NUL.
    Passing::of(|| unsafe { syscall!(nr::OPENAT, dir, path, O_PATH_DIRECTORY | O_CLOEXEC, 0) }).ok()
}

/// The path by which /proc knows what is open as `fd`; how long it is.
pub fn path_of(fd: i32, path: &mut [u8; PATH_MAX]) -> Option<usize> {
    Some(crate::proc::link(fd, path).len()).filter(|n| (1..PATH_MAX).contains(n))
}
