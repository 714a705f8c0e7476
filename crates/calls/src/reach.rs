//! From a row and the arguments of one call to the ranges of memory that the kernel may write.

use crate::{Amount, Len, Out, Row};

/// Bytes in a page, for [`Len::Pages`].
const PAGE: u64 = 4096;
/// The kernel takes no longer arrays of buffers or messages (UIO_MAXIOV).
const MAX_VECTORS: u64 = 1024;
const MSGHDR: u64 = 56;
const MMSGHDR: u64 = 64;

/// The program's memory, read with care: the addresses are the program's and may be wrong.
pub trait Memory {
    /// Fills `into` from address `at`; false if that cannot be read.
    fn read(&self, at: u64, into: &mut [u8]) -> bool;
}

/// How much of the answer could be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing is written outside the ranges given.
    All,
    /// An out-parameter is [`Len::Special`], or memory that it hangs on could not be read (the call then gives EFAULT).
    Partly,
}

/// Gives `each` every range (address, bytes > 0) that the kernel may write during the call. Ranges may overlap, and
/// reach beyond what is mapped where the program's bound does. The program must not change the memory between this and
/// the call.
pub fn written(row: &Row, args: &[u64; 6], memory: &impl Memory, mut each: impl FnMut(u64, u64)) -> Told {
    let mut told = Told::All;
    for out in row.outs() {
        if out.written(args, memory, &mut each) == Told::Partly {
            told = Told::Partly;
        }
    }
    told
}

impl Out {
    /// As [`written`], for one out-parameter.
    pub fn written(&self, args: &[u64; 6], memory: &impl Memory, mut each: impl FnMut(u64, u64)) -> Told {
        let at = args[self.arg as usize];
        if at == 0 {
            return Told::All;
        }
        let done = reach(self.len, at, args, memory, &mut |start, len| {
            if len > 0 {
                each(start, len);
            }
        });
        done.map_or(Told::Partly, |()| Told::All)
    }
}

fn reach(len: Len, at: u64, args: &[u64; 6], memory: &impl Memory, each: &mut impl FnMut(u64, u64)) -> Option<()> {
    match len {
        Len::Fixed(bytes) => each(at, u64::from(bytes)),
        Len::Bytes(amount) => each(at, value(amount, args)),
        Len::BytesPlus(amount, front) => each(at, value(amount, args).saturating_add(u64::from(front))),
        Len::Items(amount, size) => each(at, value(amount, args).saturating_mul(u64::from(size))),
        Len::Bits(amount) => each(at, value(amount, args).div_ceil(64).saturating_mul(8)),
        Len::Pages(amount) => each(at, value(amount, args).div_ceil(PAGE)),
        Len::Word(arg) => {
            let length = args[arg as usize];
            if length != 0 {
                each(at, u64::from(word(memory, length)?));
            }
        }
        Len::Iovec(amount) => buffers(at, value(amount, args), memory, each)?,
        Len::Message => message(at, memory, each)?,
        Len::Messages(amount) => {
            for i in 0..value(amount, args).min(MAX_VECTORS) {
                let header = at.checked_add(i * MMSGHDR)?;
                each(header, MMSGHDR);
                message(header, memory, each)?;
            }
        }
        Len::Handle => each(at, 8 + u64::from(word(memory, at)?)),
        Len::XattrArgs => {
            let length = word(memory, at.checked_add(8)?)?;
            each(long(memory, at)?, u64::from(length));
        }
        Len::Special => return None,
    }
    Some(())
}

fn value(amount: Amount, args: &[u64; 6]) -> u64 {
    match amount {
        Amount::Whole(arg) => args[arg as usize],
        Amount::Low(arg) => args[arg as usize] & 0xffff_ffff,
    }
}

/// `struct msghdr`: name 0, its length 8, buffers 16, their number 24, control data 32, its length 40, flags 48.
fn message(at: u64, memory: &impl Memory, each: &mut impl FnMut(u64, u64)) -> Option<()> {
    each(at, MSGHDR);
    let name = long(memory, at)?;
    if name != 0 {
        each(name, u64::from(word(memory, at.checked_add(8)?)?));
    }
    buffers(long(memory, at.checked_add(16)?)?, long(memory, at.checked_add(24)?)?, memory, each)?;
    let control = long(memory, at.checked_add(32)?)?;
    if control != 0 {
        each(control, long(memory, at.checked_add(40)?)?);
    }
    Some(())
}

fn buffers(at: u64, count: u64, memory: &impl Memory, each: &mut impl FnMut(u64, u64)) -> Option<()> {
    for i in 0..count.min(MAX_VECTORS) {
        let entry = at.checked_add(i * 16)?;
        each(long(memory, entry)?, long(memory, entry.checked_add(8)?)?);
    }
    Some(())
}

fn word(memory: &impl Memory, at: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    memory.read(at, &mut bytes).then(|| u32::from_ne_bytes(bytes))
}

fn long(memory: &impl Memory, at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory.read(at, &mut bytes).then(|| u64::from_ne_bytes(bytes))
}
