//! A connection to a stopped process that has inherited none.

use crate::channel::Listener;
use crate::inject::Failure;
use crate::processes::descriptor_of;
use crate::remote::Remote;
use libc::pid_t;
use outlast_image::degradation::Degradation;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

const SOCKET_KIND: u64 = (libc::SOCK_STREAM | libc::SOCK_CLOEXEC) as u64;

/// There is no way to hand descriptors to the process.
pub fn refused(e: Errno) -> Failure {
    Failure::Refused(Degradation::TraceForbidden, "hand descriptors to the program", e)
}

/// Makes a connection between the process and us; returns our end, and the numbers that the process has to close, the
/// first of which is its end. `may_connect`: nothing forbids the process to connect to us.
pub fn make(remote: &mut Remote, pid: pid_t, may_connect: bool) -> Result<(OwnedFd, Vec<i32>), Failure> {
    let mut batch = remote.batch();
    let pair = batch.data(&[0; 8]);
    batch.call(libc::SYS_socketpair, &[libc::AF_UNIX as u64, SOCKET_KIND, 0, pair]);
    if remote.run(&mut batch)?.is_some() {
        return Err(refused(Errno::from_raw_os_error(-batch.calls()[0].result as i32)));
    }
    let numbers = vec![batch.word(pair), batch.word(pair + 4)];
    match descriptor_of(pid, numbers[1]) {
        Ok(ours) => Ok((ours, numbers)),
        Err(e) => {
            remote.run_each(numbers.iter().map(|fd| (libc::SYS_close, vec![*fd as u64])).collect())?;
            if !may_connect {
                return Err(refused(e));
            }
            connect(remote, pid)
        }
    }
}

/// Has the process connect to us, where we may not take a descriptor of it (containers).
fn connect(remote: &mut Remote, pid: pid_t) -> Result<(OwnedFd, Vec<i32>), Failure> {
    let listener = Listener::new().map_err(refused)?;
    let mut batch = remote.batch();
    batch.call(libc::SYS_socket, &[libc::AF_UNIX as u64, SOCKET_KIND, 0]);
    if remote.run(&mut batch)?.is_some() {
        return Err(refused(Errno::from_raw_os_error(-batch.calls()[0].result as i32)));
    }
    let socket = batch.calls()[0].result as i32;
    let mut batch = remote.batch();
    let address = batch.data(listener.address());
    batch.call(libc::SYS_connect, &[socket as u64, address, listener.address().len() as u64]);
    let failed = remote.run(&mut batch)?.map(|call| Errno::from_raw_os_error(-batch.calls()[call].result as i32));
    match failed.map_or_else(|| listener.accept(pid), Err) {
        Ok(ours) => Ok((ours, vec![socket])),
        Err(e) => {
            remote.run_each(vec![(libc::SYS_close, vec![socket as u64])])?;
            Err(refused(e))
        }
    }
}
