//! The three ways to make room for a jump at a site. See [`crate::plan`] for their order.

use crate::boundary::preceding;
use crate::code::Code;
use crate::decode::{decode, Undecodable};
use crate::instruction::Flow;
use crate::refusal::Obstacle;
use crate::region::{ends, Region, JUMP_LEN, MAX_PATCH, SYSCALL};

/// Functions begin at multiples of this where padding lies between them.
const FUNCTION_ALIGNMENT: u64 = 16;

/// Overwrites `code[from..to]` for the call at `code[site]`.
fn region(code: &Code, from: usize, to: usize, site: usize) -> Result<Region, Obstacle> {
    if to - from > MAX_PATCH {
        return Err(Obstacle::TooLong);
    }
    let mut original = [0; MAX_PATCH];
    original[..to - from].copy_from_slice(&code.bytes[from..to]);
    Ok(Region { at: code.address + from as u64, original, len: (to - from) as u8, site: (site - from) as u8 })
}

/// Form 1.
pub(crate) fn before(code: &Code, site: usize) -> Result<Region, Obstacle> {
    let from = preceding(code.bytes, site).next().ok_or(Obstacle::Uncertain)?;
    movable_before(code, from)?;
    if site - from < JUMP_LEN {
        return Err(Obstacle::NoRoom);
    }
    region(code, from, site, site)
}

/// Form 3.
pub(crate) fn around(code: &Code, site: usize) -> Result<Region, Obstacle> {
    let to = site + SYSCALL.len();
    for from in preceding(code.bytes, site) {
        movable_before(code, from)?;
        if to - from >= JUMP_LEN {
            return region(code, from, to, site);
        }
    }
    Err(Obstacle::Uncertain)
}

/// An instruction before the call is moved only if it goes on to the next one.
fn movable_before(code: &Code, at: usize) -> Result<(), Obstacle> {
    let instruction = decode(&code.bytes[at..]).map_err(|_| Obstacle::Undecodable)?;
    if instruction.entry {
        return Err(Obstacle::Entry);
    }
    if instruction.movable && instruction.flow == Flow::Next {
        Ok(())
    } else {
        Err(Obstacle::Unmovable)
    }
}

/// Form 2.
pub(crate) fn after(code: &Code, site: usize) -> Result<Region, Obstacle> {
    let mut to = site + SYSCALL.len();
    while to - site < JUMP_LEN {
        let instruction = decode(&code.bytes[to..]).map_err(|why| match why {
            Undecodable::Truncated => Obstacle::NoRoom,
            _ => Obstacle::Undecodable,
        })?;
        if instruction.entry {
            return Err(Obstacle::Entry);
        }
        if !instruction.movable {
            return Err(Obstacle::Unmovable);
        }
        to += instruction.len as usize;
        if ends(&instruction) && to - site < JUMP_LEN {
            padding(code, to, site + JUMP_LEN)?;
            to = site + JUMP_LEN;
        }
    }
    region(code, site, to, site)
}

/// Whether `code[from..to]`, behind the end of a function, is filled up with `nop` or `int3` that no function begins with:
/// the filling goes on to where functions begin, or cannot be executed.
fn padding(code: &Code, mut from: usize, to: usize) -> Result<(), Obstacle> {
    if code.bytes.get(from..to).is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0xcc)) {
        return Ok(());
    }
    loop {
        if from >= to && (code.address + from as u64) % FUNCTION_ALIGNMENT == 0 {
            return Ok(());
        }
        match code.bytes.get(from..).map(decode) {
            Some(Ok(instruction)) if instruction.nop => from += instruction.len as usize,
            _ => return Err(Obstacle::NoRoom),
        }
    }
}
