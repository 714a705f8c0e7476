//! The disk as QEMU sees it: a server of network block devices on a socket. Of the protocol
//! (github.com/NetworkBlockDevice/nbd, doc/proto.md) it has what QEMU asks for.

use crate::disk::Disk;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

const INIT: u64 = u64::from_be_bytes(*b"NBDMAGIC");
const OPTION: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;
const FIXED_NEWSTYLE_NO_ZEROES: u16 = 1 | 2;
const OPT_EXPORT_NAME: u32 = 1;
const OPT_ABORT: u32 = 2;
const OPT_INFO: u32 = 6;
const OPT_GO: u32 = 7;
const REP_ACK: u32 = 1;
const REP_INFO: u32 = 3;
const REP_UNSUPPORTED: u32 = 1 << 31 | 1;
const INFO_EXPORT: u16 = 0;
/// HAS_FLAGS, SEND_FLUSH, SEND_FUA.
const FLAGS: u16 = 1 | 4 | 8;
const FUA: u16 = 1;
/// Longest request: what QEMU sends.
const LONGEST: u32 = 32 << 20;
const EINVAL: u32 = 22;
const EIO: u32 = 5;

/// Serves one client until it is gone.
pub fn serve(mut stream: UnixStream, disk: &Mutex<Disk>) -> io::Result<()> {
    if negotiate(&mut stream, disk)? {
        while request(&mut stream, disk)? {}
    }
    Ok(())
}

fn lock(disk: &Mutex<Disk>) -> std::sync::MutexGuard<'_, Disk> {
    disk.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number<const N: usize>(stream: &mut UnixStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// False: the client wants no disk after all.
fn negotiate(stream: &mut UnixStream, disk: &Mutex<Disk>) -> io::Result<bool> {
    stream.write_all(
        &[&INIT.to_be_bytes()[..], &OPTION.to_be_bytes(), &FIXED_NEWSTYLE_NO_ZEROES.to_be_bytes()].concat(),
    )?;
    let flags = u32::from_be_bytes(number(stream)?);
    let size = lock(disk).len()?;
    loop {
        if u64::from_be_bytes(number(stream)?) != OPTION {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let option = u32::from_be_bytes(number(stream)?);
        let mut data = vec![0; u32::from_be_bytes(number(stream)?).min(LONGEST) as usize];
        stream.read_exact(&mut data)?;
        match option {
            OPT_EXPORT_NAME => {
                stream.write_all(&[&size.to_be_bytes()[..], &FLAGS.to_be_bytes()].concat())?;
                if flags & 2 == 0 {
                    stream.write_all(&[0; 124])?;
                }
                return Ok(true);
            }
            OPT_INFO | OPT_GO => {
                let info = [&INFO_EXPORT.to_be_bytes()[..], &size.to_be_bytes(), &FLAGS.to_be_bytes()].concat();
                answer(stream, option, REP_INFO, &info)?;
                answer(stream, option, REP_ACK, &[])?;
                if option == OPT_GO {
                    return Ok(true);
                }
            }
            OPT_ABORT => {
                answer(stream, option, REP_ACK, &[])?;
                return Ok(false);
            }
            _ => answer(stream, option, REP_UNSUPPORTED, &[])?,
        }
    }
}

fn answer(stream: &mut UnixStream, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    let len = data.len() as u32;
    let head = [&OPTION_REPLY.to_be_bytes()[..], &option.to_be_bytes(), &kind.to_be_bytes(), &len.to_be_bytes()];
    stream.write_all(&[&head.concat(), data].concat())
}

/// False: the client is done.
fn request(stream: &mut UnixStream, disk: &Mutex<Disk>) -> io::Result<bool> {
    if u32::from_be_bytes(number(stream)?) != REQUEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let (flags, kind) = (u16::from_be_bytes(number(stream)?), u16::from_be_bytes(number(stream)?));
    let handle: [u8; 8] = number(stream)?;
    let (at, len) = (u64::from_be_bytes(number(stream)?), u32::from_be_bytes(number(stream)?));
    let mut data = Vec::new();
    let error = match kind {
        _ if len > LONGEST => return Err(io::ErrorKind::InvalidData.into()),
        0 => {
            data.resize(len as usize, 0);
            lock(disk).read(at, &mut data).map_or(EIO, |()| 0)
        }
        1 => {
            let mut bytes = vec![0; len as usize];
            stream.read_exact(&mut bytes)?;
            lock(disk).write(at, &bytes, flags & FUA != 0).map_or(EIO, |()| 0)
        }
        2 => return Ok(false),
        3 => lock(disk).flush().map_or(EIO, |()| 0),
        _ => EINVAL,
    };
    if lock(disk).is_dead() {
        return Ok(true);
    }
    if error != 0 {
        data.clear();
    }
    stream.write_all(&[&REPLY.to_be_bytes()[..], &error.to_be_bytes(), &handle, &data].concat())?;
    Ok(true)
}
