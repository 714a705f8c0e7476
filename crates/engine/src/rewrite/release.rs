//! Patches are taken back: where the program changes its own mappings, and where the engine leaves it to the kernel.

use super::{rewriter, CodeMemory, Rewriter};
use crate::thread::Thread;
use core::ops::Range;
use outlast_rewrite::AREA_LEN;

/// All of user space.
const EVERYWHERE: Range<u64> = 0..1 << 47;

/// The program is about to change the protection of `start..end`. What becomes writable shows its original bytes again.
/// False if it could not.
pub fn protecting(start: u64, end: u64, writable: bool) -> bool {
    // SAFETY: called by dispatch.
    let r = unsafe { rewriter() };
    r.segments.drop_range(start, end);
    r.refused.drop_range(start..end);
    !writable || r.undo(start..end, false)
}

/// The program is about to change the place or the content of `start..end`: its original bytes come back. False if they
/// could not.
pub fn changing(start: u64, end: u64) -> bool {
    protecting(start, end, true)
}

/// The program is about to unmap `start..end`, or to map something over it. Stubs that lie there must not be needed any more.
pub fn unmapping(t: &mut Thread, start: u64, end: u64) {
    // SAFETY: called by dispatch.
    let r = unsafe { rewriter() };
    while let Some(area) = r.area_in(start, end) {
        while let Some(stub) = r.patch_in(&area) {
            if r.stubs.stub_at(t.regs.rip) == Some(stub.patch().stub_address) {
                t.regs.rip = stub.program_address(t.regs.rip).unwrap_or(t.regs.rip);
            }
            if !r.undo(stub.patch().overwrite().at()..stub.patch().overwrite().at() + 1, false) {
                break;
            }
        }
        r.stubs.drop_areas(area);
        r.areas_changed = true;
        r.count();
    }
}

/// `start..end` is gone.
pub fn unmapped(start: u64, end: u64) {
    // SAFETY: called by dispatch.
    let r = unsafe { rewriter() };
    r.segments.drop_range(start, end);
    r.refused.drop_range(start..end);
    r.pages.remove(start, end);
    if r.stubs.drop_range(start..end) > 0 {
        r.count();
    }
}

/// Protection is suspended: all original bytes come back, and the program goes on in them.
pub fn leave_program(t: &mut Thread) {
    // SAFETY: called at the gate, or for a program whose state was taken from a signal frame.
    let r = unsafe { rewriter() };
    let stub = r.stubs.stub_at(t.regs.rip).and_then(|address| r.stub(address));
    if r.undo(EVERYWHERE, false) {
        if let Some(address) = stub.and_then(|stub| stub.program_address(t.regs.rip)) {
            t.regs.rip = address;
        }
    }
}

/// This is a child that the kernel serves from now on. It may return from signal handlers to addresses inside overwritten
/// bytes, which nobody translates any more; all other patches serve it, too, and most children exec soon.
pub fn leave_child() {
    // SAFETY: the child's only thread, in its own copy of the memory.
    let r = unsafe { rewriter() };
    r.undo(EVERYWHERE, true);
}

impl Rewriter {
    /// Puts the original bytes of `range` back: only of patches that an instruction of the program starts inside of, if so
    /// wanted. False if the kernel refused.
    fn undo(&mut self, range: Range<u64>, only_interiors: bool) -> bool {
        if self.stubs.touching(range.clone()).next().is_none() {
            return true;
        }
        let Some(memory) = CodeMemory::open() else { return false };
        for address in self.stubs.touching(range.clone()) {
            let Some(patch) = self.stub(address).map(|stub| stub.patch()) else { continue };
            if only_interiors && !patch.overwrite().holds_boundary() {
                continue;
            }
            let undo = patch.undo();
            let mut now = [0; outlast_rewrite::MAX_PATCH];
            let now = &mut now[..undo.expected().len()];
            let there = crate::user::read_bytes(undo.at(), now) && undo.still_valid(now);
            if there && !(memory.write(undo.at(), undo.replacement()) && self.pages.add(undo.at(), now.len())) {
                return false;
            }
        }
        if !only_interiors {
            self.stubs.retire_range(range);
            self.count();
        }
        true
    }

    /// An area that has bytes of `start..end`.
    fn area_in(&self, start: u64, end: u64) -> Option<Range<u64>> {
        self.stubs.areas().map(|base| base..base + AREA_LEN).find(|area| area.start < end && start < area.end)
    }

    /// A patch whose stub lies in `area`.
    fn patch_in(&self, area: &Range<u64>) -> Option<outlast_rewrite::Stub> {
        let address = self.stubs.touching(EVERYWHERE).find(|stub| area.contains(stub))?;
        self.stub(address)
    }
}
