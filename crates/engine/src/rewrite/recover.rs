//! After a recovery: text and stubs are back as they were committed; the tables are made anew from them.

use super::{rewriter, CodeMemory, Rewriter, AREAS};
use crate::gate;
use crate::scratch;
use crate::state::{object, Engine};
use crate::user;
use outlast_rewrite::area::STUBS;
use outlast_rewrite::stub::GATE_OFFSET;
use outlast_rewrite::{Stub, AREA_LEN, MAX_PATCH, STUB_LEN};

/// Takes up the stubs of the process whose memory was just restored. The store is untrusted: a stub counts only if it is
/// what the planner would have written, and in force only if the program's bytes lead to it.
pub fn recover(e: &mut Engine) {
    // SAFETY: called by a restore, which uses nothing of the rewriter.
    let r = unsafe { rewriter() };
    r.forget();
    let buf = scratch::object_buffer();
    let len = e.store().object(object::STUBS, 0, buf).unwrap_or(0).min(AREAS * 8);
    let mut bases = [0u64; AREAS];
    for (base, bytes) in bases.iter_mut().zip(buf[..len].chunks_exact(8)) {
        *base = u64::from_le_bytes(bytes.try_into().unwrap_or([0; 8]));
    }
    for &base in bases[..len / 8].iter().filter(|base| **base % 4096 == 0) {
        r.take_up(base);
    }
    r.count();
}

impl Rewriter {
    fn forget(&mut self) {
        self.stubs.drop_areas(0..u64::MAX);
        self.segments.drop_range(0, u64::MAX);
        self.refused.drop_range(0..u64::MAX);
        self.pages.clear();
        (self.areas_changed, self.stopped) = (false, false);
    }

    fn take_up(&mut self, base: u64) {
        let mut area = [0; AREA_LEN as usize];
        if self.stubs.areas().any(|other| base.abs_diff(other) < AREA_LEN)
            || !user::read_bytes(base, &mut area)
            || !self.stubs.add(base)
        {
            return;
        }
        for number in 0..STUBS {
            let address = base + (number * STUB_LEN) as u64;
            let bytes = area[number * STUB_LEN..].first_chunk();
            let Some(stub) = bytes.and_then(|bytes| Stub::read(address, bytes)) else { continue };
            let jump = stub.patch().undo();
            let mut now = [0; MAX_PATCH];
            let now = &mut now[..jump.expected().len()];
            let in_force = user::read_bytes(jump.at(), now) && jump.still_valid(now);
            self.stubs.adopt(address, &stub, in_force);
            self.lead_to_gate(address, &area[number * STUB_LEN..]);
        }
    }

    /// An engine of another version has its gate elsewhere.
    fn lead_to_gate(&mut self, address: u64, bytes: &[u8]) {
        let gate = gate::address().to_le_bytes();
        if bytes[GATE_OFFSET..GATE_OFFSET + 8] != gate {
            let slot = address + GATE_OFFSET as u64;
            if !CodeMemory::open().is_some_and(|memory| memory.write(slot, &gate) && self.pages.add(slot, gate.len())) {
                crate::control::fail!(0);
            }
        }
    }
}
