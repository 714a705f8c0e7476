//! A perf event that counts what meets an address in one thread, and in threads that it begins.

use libc::{c_ulong, pid_t};
use outlast_interfaces::dbr::Access;
use rustix::io::Errno;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `struct perf_event_attr` up to its version 5, of 112 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    bp_type: u32,
    bp_addr: u64,
    bp_len: u64,
    rest: [u64; 5],
}
const _: () = assert!(size_of::<Attributes>() == 112);

const BREAKPOINT: u32 = 5;
/// A multiple that no counter comes to: nothing is sampled.
const NEVER: u64 = 1 << 60;
/// Also of threads that it begins; not of processes.
const INHERIT: u64 = 1 << 1;
const INHERIT_THREAD: u64 = 1 << 35;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const CLOEXEC: c_ulong = 8;

/// What is to be met.
#[derive(Clone, Copy, Debug)]
pub struct Meeting {
    pub address: u64,
    pub length: u32,
    pub access: Access,
}

/// Counts until it is dropped.
#[derive(Debug)]
pub struct Counter(OwnedFd);

impl Counter {
    pub fn of(thread: pid_t, meeting: Meeting) -> Result<Self, Errno> {
        let attributes = Attributes {
            kind: BREAKPOINT,
            size: size_of::<Attributes>() as u32,
            config: 0,
            sample_period: NEVER,
            sample_type: 0,
            read_format: 0,
            flags: INHERIT | INHERIT_THREAD | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            wakeup: 0,
            bp_type: match meeting.access {
                Access::Write => 2,
                Access::ReadOrWrite => 3,
                Access::Execute => 4,
            },
            bp_addr: meeting.address,
            bp_len: meeting.length.into(),
            rest: [0; 5],
        };
        if !outlast_supervisor::foreign_filter::lets(libc::SYS_perf_event_open as u32) {
            return Err(Errno::PERM);
        }
        // SAFETY: the kernel reads the structure, whose size is in it; the descriptor that it returns is nobody else's.
        unsafe {
            match libc::syscall(libc::SYS_perf_event_open, &raw const attributes, thread, -1, -1, CLOEXEC) {
                -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
                fd => Ok(Self(OwnedFd::from_raw_fd(fd as i32))),
            }
        }
    }

    /// How often it was met.
    pub fn read(&self) -> u64 {
        let mut count = 0u64;
        // SAFETY: the kernel writes no more than the eight bytes of `count`.
        let read = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
        if read == 8 {
            count
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    /// Skipped by no machine silently: one that forbids it says so.
    #[test]
    fn a_threads_own_writes_are_counted_with_those_of_threads_that_it_begins() {
        let place = Box::leak(Box::new(0u64));
        let at = std::ptr::from_mut(place) as usize;
        let meeting = Meeting { address: at as u64, length: 8, access: Access::Write };
        let write = move |times: u64| {
            for n in 0..times {
                // SAFETY: the place is leaked, and one thread at a time writes there.
                unsafe { black_box(at as *mut u64).write_volatile(n) };
            }
        };
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        match Counter::of(own, meeting) {
            Ok(counter) => {
                write(1000);
                std::thread::spawn(move || write(500)).join().unwrap();
                assert_eq!(counter.read(), 1500);
            }
            Err(e) => assert!([Errno::ACCESS, Errno::PERM].contains(&e), "{e}"),
        }
    }
}
