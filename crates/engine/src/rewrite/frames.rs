//! Addresses in signal frames.
//!
//! A frame shows the address in the program where that is enough to go on there: unwinders know nothing of stubs. Where
//! instructions behind the call were moved (see `outlast_rewrite::plan`) the program's bytes are no place to go on, and
//! the frame keeps the stub's address, which stays good for whatever the program does with it.

use super::{rewriter, Rewriter};
use crate::user;
use outlast_rewrite::{Stub, STUB_LEN};

impl Rewriter {
    /// The stub at `address`, if there is one.
    pub(super) fn stub(&self, address: u64) -> Option<Stub> {
        let mut bytes = [0; STUB_LEN];
        user::read_bytes(address, &mut bytes).then(|| Stub::read(address, &bytes)).flatten()
    }
}

/// What a signal frame shows for `rip`.
pub fn to_program(rip: u64) -> u64 {
    // SAFETY: called while a signal is delivered: not within another use.
    let r = unsafe { rewriter() };
    let stub = r.stubs.stub_at(rip).and_then(|address| r.stub(address));
    match stub {
        Some(stub) if !stub.patch().overwrite().holds_boundary() => stub.program_address(rip).unwrap_or(rip),
        _ => rip,
    }
}

/// Where a program goes on that returns from a signal handler to `rip`: a frame from before the bytes there were overwritten
/// may lead to the middle of them.
pub fn to_stub(rip: u64) -> u64 {
    // SAFETY: called for a return from a signal handler: not within another use.
    let r = unsafe { rewriter() };
    let address = r.stubs.touching(rip..rip.saturating_add(1)).next();
    match address.and_then(|address| r.stub(address)) {
        Some(stub) if stub.patch().at() != rip => stub.stub_address(rip).unwrap_or(rip),
        _ => rip,
    }
}
