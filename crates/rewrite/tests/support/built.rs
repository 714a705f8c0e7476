//! Code built from bytes, with one system call in it.

#![allow(dead_code)]

use outlast_rewrite::{plan, BranchMap, Code, Patch, Plan, Refusal};
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

/// Where code, stubs and the gate lie if they are not executed.
pub const CODE: u64 = 0x5555_0040_0000;
pub const STUB: u64 = CODE + 0x1_0000;
pub const GATE: u64 = 0x2000_0000_1000;

/// No room before the call: a call, then two bytes.
pub const TIGHT: &str = "e8 00 00 00 00 31 c0";

/// A plan for the call between `before` and `after`.
pub fn planned(before: &str, after: &str) -> Result<(Plan, Built), Refusal> {
    let built = Built::new(CODE, &hex(before), &hex(after));
    plan_in(&built.code(), built.site, &|_| false).map(|plan| (plan, built))
}

/// Its patch, with the stub at [`STUB`].
pub fn linked(before: &str, after: &str) -> (Patch, Built) {
    let (plan, built) = planned(before, after).unwrap();
    (plan.link(STUB, GATE).unwrap(), built)
}
