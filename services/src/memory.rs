//! Memory by the page, as memfds. The clients that got pages keep them, so that contents outlive this service; which page
//! aliases which, and in whose hands it is, is told again by those who made it so.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use outlast_glue_rt::{sound as trusted, CallError, Channel, Mapped, Stop, CHANNELS};

use crate::stubs::memory::{Client, Service};

pub const READ: u32 = 1;
pub const WRITE: u32 = 2;
pub const PAGE: usize = 4096;
/// Pages of one grant, and of all.
const LARGEST: u32 = 16_384;
const ALL: u32 = 65_536;
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

#[derive(Clone)]
struct Page {
    /// In whose hands it is, and who may revoke it beside.
    holder: u32,
    maker: u32,
    /// The page that this is an alias of; 0: none.
    of: u64,
    rights: u32,
    count: u32,
    memory: Arc<OwnedFd>,
}

#[derive(Clone, Default)]
pub struct Pages {
    pages: HashMap<u64, Page>,
}

/// Fresh memory that nobody can cut off beneath another's mapping.
fn create(count: u32) -> io::Result<OwnedFd> {
    let done = |result: i32| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) };
    // SAFETY: plain calls; the descriptor is new and ours.
    unsafe {
        let fd = done(libc::memfd_create(c"component-pages".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING))?;
        let file = OwnedFd::from_raw_fd(fd);
        done(libc::ftruncate(fd, (count as usize * PAGE) as libc::off_t))?;
        done(libc::fcntl(fd, libc::F_ADD_SEALS, SEALS))?;
        // Who has it to read does not get it to write by opening it again.
        done(libc::fchmod(fd, 0o400))?;
        Ok(file)
    }
}

/// What a client gives back is such memory, as far as it can harm others.
fn sound(file: BorrowedFd<'_>, count: u32) -> bool {
    // SAFETY: plain calls on a descriptor that is ours.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) == SEALS
            && libc::fstat(file.as_raw_fd(), &mut status) == 0
            && status.st_size == (count as usize * PAGE) as libc::off_t
    }
}

/// The same memory, to be read only.
fn read_only(file: &OwnedFd) -> io::Result<OwnedFd> {
    std::fs::File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).map(OwnedFd::from)
}

impl Pages {
    fn page(&self, page: u64) -> Result<&Page, Stop> {
        self.pages.get(&page).ok_or(Stop::Errno(libc::EBADF))
    }

    /// The page and all that are aliases of it, of whatever depth.
    fn subtree(&self, top: u64) -> Vec<u64> {
        let mut all = vec![top];
        let mut next = 0;
        while let Some(at) = all.get(next).copied() {
            all.extend(self.pages.iter().filter(|(_, page)| page.of == at).map(|(id, _)| *id));
            next += 1;
        }
        all
    }
}

impl Service for Pages {
    fn mem_get(
        &mut self,
        client: u32,
        count: u32,
        memory: Option<Arc<OwnedFd>>,
        id: u64,
    ) -> Result<(u64, Arc<OwnedFd>), Stop> {
        let used: u32 = self.pages.values().filter(|page| page.of == 0).map(|page| page.count).sum();
        if count == 0 || count > LARGEST {
            return Err(Stop::Errno(libc::EINVAL));
        }
        if used + count > ALL {
            return Err(Stop::Errno(libc::ENOMEM));
        }
        let memory = match memory {
            Some(memory) if sound(memory.as_fd(), count) => memory,
            Some(_) => return Err(Stop::Errno(libc::EINVAL)),
            None => Arc::new(trusted(create(count)).map_err(|_| Stop::Errno(libc::ENOMEM))?),
        };
        let (holder, maker, of, rights) = (client, client, 0, READ | WRITE);
        self.pages.insert(id, Page { holder, maker, of, rights, count, memory: memory.clone() });
        Ok((id, memory))
    }

    fn mem_alias(
        &mut self,
        client: u32,
        of: u64,
        to: u32,
        rights: u32,
        _memory: Option<Arc<OwnedFd>>,
        id: u64,
    ) -> Result<u64, Stop> {
        let page = self.page(of)?;
        if page.holder != client {
            return Err(Stop::Refused(libc::EPERM));
        }
        if to as usize >= CHANNELS || rights == 0 || rights & !page.rights != 0 {
            return Err(Stop::Errno(libc::EINVAL));
        }
        let alias = Page { holder: to, maker: client, of, rights, ..page.clone() };
        self.pages.insert(id, alias);
        Ok(id)
    }

    fn mem_map(&mut self, client: u32, page: u64) -> Result<(i32, u32, u32, Arc<OwnedFd>), Stop> {
        let page = self.page(page)?;
        if page.holder != client {
            return Err(Stop::Refused(libc::EPERM));
        }
        let memory = match page.rights & WRITE {
            0 => trusted(read_only(&page.memory)).map(Arc::new).map_err(|_| Stop::Errno(libc::EMFILE))?,
            _ => page.memory.clone(),
        };
        Ok((0, page.count, page.rights, memory))
    }

    fn mem_revoke(&mut self, client: u32, page: u64) -> Result<i32, Stop> {
        self.held(client, page)?;
        for page in self.subtree(page) {
            self.pages.remove(&page);
        }
        Ok(0)
    }

    fn mem_who(&mut self, client: u32) -> Result<u32, Stop> {
        Ok(client)
    }

    fn held(&mut self, client: u32, page: u64) -> Result<Vec<(u32, u64)>, Stop> {
        let top = self.page(page)?;
        if client != top.holder && client != top.maker {
            return Err(Stop::Refused(libc::EPERM));
        }
        let all = self.subtree(page).into_iter();
        Ok(all.filter_map(|id| self.pages.get(&id).map(|page| (page.holder, id))).collect())
    }
}

/// Maps a page that the client has, until it is revoked.
pub fn map(client: &Client, page: u64) -> Result<Arc<Mapped>, CallError> {
    let (_, count, rights, memory) = client.mem_map(page)?;
    map_in(client.channel(), page, count, rights, memory.as_fd())
}

/// The same with what `mem_map` said of the page, for any stubs.
pub fn map_in(
    channel: &Channel,
    page: u64,
    count: u32,
    rights: u32,
    memory: BorrowedFd<'_>,
) -> Result<Arc<Mapped>, CallError> {
    match channel.mappings().map(page, memory, count as usize * PAGE, rights & WRITE != 0) {
        Ok(Some(mapped)) => Ok(mapped),
        Ok(None) => Err(CallError::Unknown(page)),
        Err(error) => Err(CallError::Service(error.raw_os_error().unwrap_or(libc::EINVAL))),
    }
}
