//! Code built from bytes, with one system call in it.

#![allow(dead_code)]

use outlast_rewrite::{plan, BranchMap, Code, Plan, Refusal};
use std::ops::Range;

/// Filling that long is enough for the windows in which streams of instructions begin.
pub const FILLING: usize = 256;

/// Code at an address.
pub struct Built {
    pub address: u64,
    pub bytes: Vec<u8>,
    pub site: u64,
}

impl Built {
    /// `nop`s, `before`, a system call, `after`, and `int3`s.
    pub fn new(address: u64, before: &[u8], after: &[u8]) -> Built {
        let mut bytes = vec![0x90; FILLING];
        bytes.extend(before);
        let site = address + bytes.len() as u64;
        bytes.extend([0x0f, 0x05]);
        bytes.extend(after);
        bytes.extend([0xcc; 64]);
        Built { address, bytes, site }
    }

    pub fn code(&self) -> Code<'_> {
        Code { address: self.address, bytes: &self.bytes }
    }
}

/// Bytes from their usual notation.
pub fn hex(text: &str) -> Vec<u8> {
    text.split_ascii_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// Plans one site, with a map of its own.
pub fn plan_in(code: &Code, site: u64, forbidden: &dyn Fn(Range<u64>) -> bool) -> Result<Plan, Refusal> {
    let mut bits = vec![0; BranchMap::words(code.bytes.len())];
    plan(&BranchMap::new(*code, &mut bits).unwrap(), site, forbidden)
}
