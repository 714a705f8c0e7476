//! The pin `mem`: what the kernel says of the program's memory, and what is in it.

use crate::desk::Shared;
use libc::pid_t;
use outlast_core::{Event, Failure, Payload, Pin};
use outlast_interfaces::mem::{self, Account, Measured, Page, Range, MOST, MOST_PAGES, NAME};
use outlast_interfaces::watch::Look;
use outlast_supervisor::control_group::Groups;
use outlast_supervisor::remote;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;

pub struct Mem(pub Shared);

impl Pin for Mem {
    fn operate(&mut self, operation: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        let pid = |program: &str| self.0.borrow().process_of(NAME, program).map(|process| process.pid);
        match operation {
            mem::WATCH => self.0.borrow_mut().watch(NAME, &argument.read()?).map(|()| Payload::NONE),
            mem::ACCOUNT => {
                let pid = pid(&argument.read::<String>()?)?;
                let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).map_err(refused)?;
                Payload::of(&account(&rollup))
            }
            mem::COPY => {
                let Range { program, address, length } = argument.read()?;
                let length = within(length, MOST)?;
                let mut bytes = vec![0; length as usize];
                remote::read_memory(pid(&program)?, address, &mut bytes).map_err(refused)?;
                Payload::of(&bytes)
            }
            _ => {
                let Range { program, address, length } = argument.read()?;
                within(length, MOST_PAGES * PAGE)?;
                Payload::of(&pages(pid(&program)?, address, length)?)
            }
        }
    }

    fn wanted(&mut self, _: &'static str, is_wanted: bool) {
        if !is_wanted {
            self.0.borrow_mut().sights.end(NAME);
        }
    }
}

fn refused(why: impl std::fmt::Display) -> Failure {
    Failure::Refused(NAME.into(), why.to_string())
}

fn within(length: u64, most: u64) -> Result<u64, Failure> {
    (length <= most).then_some(length).ok_or_else(|| refused(format!("no more than {most} bytes at once")))
}

/// One look at it; none: the process is gone.
pub fn measure(pid: pid_t, look: Look) -> Option<Measured> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let size = |name| size(&status, name);
    let group = Groups::of(pid).and_then(|groups| groups.memory()?.limit()).map(|limit| limit.bytes);
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|info| self::size(&info, "MemTotal:"));
    Some(Measured {
        look,
        resident: size("VmRSS:")?,
        anonymous: size("RssAnon:")?,
        files: size("RssFile:")?,
        shared: size("RssShmem:")?,
        swapped: size("VmSwap:")?,
        limit: group.into_iter().chain(machine).min(),
    })
}

fn account(rollup: &str) -> Account {
    let size = |name| size(rollup, name).unwrap_or(0);
    Account {
        resident: size("Rss:"),
        proportional: size("Pss:"),
        shared_clean: size("Shared_Clean:"),
        shared_dirty: size("Shared_Dirty:"),
        private_clean: size("Private_Clean:"),
        private_dirty: size("Private_Dirty:"),
        swapped: size("Swap:"),
    }
}

/// Of a line `NAME  1744 kB`, in bytes.
fn size(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The pages that a range touches, as pagemap has them: a word for each.
fn pages(pid: pid_t, address: u64, length: u64) -> Result<Vec<Page>, Failure> {
    let end = address.checked_add(length).ok_or_else(|| refused("beyond the end of all addresses"))?;
    let count = (end.div_ceil(PAGE) - address / PAGE).min(MOST_PAGES + 1);
    let pagemap = File::open(format!("/proc/{pid}/pagemap")).map_err(refused)?;
    let mut words = vec![0; count as usize * 8];
    pagemap.read_exact_at(&mut words, address / PAGE * 8).map_err(refused)?;
    let word = |bytes: &[u8]| u64::from_ne_bytes(std::array::from_fn(|n| bytes[n]));
    Ok(words.chunks_exact(8).map(|bytes| page(word(bytes))).collect())
}

fn page(word: u64) -> Page {
    let bit = |n: u32| word >> n & 1 != 0;
    match (bit(63), bit(62)) {
        (true, _) => Page::Present { exclusive: bit(56), file: bit(61) },
        (false, true) => Page::Swapped,
        (false, false) => Page::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_their_own_lines_only() {
        let text =
            "00400000-7ffd r-xp [rollup]\nRss:    1744 kB\nPss:\t 595 kB\nPss_Dirty:  112 kB\nPrivate_Dirty: 8 kB\n";
        let account = account(text);
        assert_eq!((account.resident, account.proportional, account.private_dirty), (1744 << 10, 595 << 10, 8 << 10));
        for hostile in ["", "Rss:", "Rss: kB", "Rss: -3 kB", "Rss: 18446744073709551615 kB", "Rss: 3 MB", " Rss: 3 kB"]
        {
            assert_eq!(size(hostile, "Rss:"), None, "{hostile:?}");
        }
    }

    #[test]
    fn words_of_pagemap() {
        assert_eq!(page(0), Page::Absent);
        assert_eq!(page(1 << 62), Page::Swapped);
        assert_eq!(page(1 << 63 | 1 << 56), Page::Present { exclusive: true, file: false });
        assert_eq!(page(1 << 63 | 1 << 61), Page::Present { exclusive: false, file: true });
    }

    #[test]
    fn ones_own_memory_is_as_it_was_written() {
        let own = std::process::id() as pid_t;
        let memory = vec![7u8; 3 * PAGE as usize];
        let pages = pages(own, memory.as_ptr() as u64, memory.len() as u64).unwrap();
        assert!(pages.len() >= 3 && pages.iter().all(|page| matches!(page, Page::Present { .. })), "{pages:?}");
        assert!(super::pages(own, u64::MAX - 1, 2).is_err());
        assert!(super::pages(own, 1 << 63, 1).is_err());
        let look = Look { at: std::time::Duration::ZERO, process: own, life: 0 };
        let measured = measure(own, look).unwrap();
        assert!(
            measured.resident >= measured.anonymous && measured.limit.is_some_and(|limit| limit > 0),
            "{measured:?}"
        );
    }
}
