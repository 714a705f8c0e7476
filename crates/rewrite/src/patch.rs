//! A finished patch: what to write where.

use crate::emit::{self, Layout};
use crate::overwrite::Overwrite;
use crate::region::Region;
use crate::stub::{CODE_OFFSET, GATE_OFFSET, STUB_LEN};

/// A stub, and the overwriting of the program's bytes by a jump to it. Order: the stub first, whole; then the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Patch {
    pub(crate) region: Region,
    pub(crate) layout: Layout,
    pub(crate) overwrite: Overwrite,
    /// Address of the stub.
    pub stub_address: u64,
    /// The stub, header and code, to be written there. Executable; the gate's address is the only thing in it that may
    /// change later, at [`Patch::gate_slot`].
    pub stub: [u8; STUB_LEN],
}

impl Patch {
    /// Address of the first overwritten byte.
    pub fn at(&self) -> u64 {
        self.region.at
    }

    /// Address of the `syscall`.
    pub fn site(&self) -> u64 {
        self.region.site()
    }

    /// Puts the jump in the place of the program's bytes.
    pub fn overwrite(&self) -> &Overwrite {
        &self.overwrite
    }

    /// Puts the program's bytes back. The stub must stay: threads may be inside it or come back to it.
    pub fn undo(&self) -> Overwrite {
        let Overwrite { at, len, old, new, .. } = self.overwrite;
        // Only the jump is ever executed of what is overwritten now.
        Overwrite { at, len, old: new, new: old, holds_boundary: false }
    }

    /// Address of the 8-byte address of the gate.
    pub fn gate_slot(&self) -> u64 {
        self.stub_address + GATE_OFFSET as u64
    }

    /// Address that the jump leads to.
    pub fn entry(&self) -> u64 {
        self.stub_address + CODE_OFFSET as u64
    }

    /// Address of E, where a restarted call goes on.
    pub fn restart(&self) -> u64 {
        self.stub_address + u64::from(self.layout.restart)
    }

    /// Address where the gate returns to: what it finds in rcx.
    pub fn tail(&self) -> u64 {
        self.stub_address + self.layout.tail() as u64
    }

    /// How many bytes of the stub are used.
    pub fn stub_len(&self) -> usize {
        self.layout.end as usize
    }

    pub(crate) fn new(region: Region, stub_address: u64, gate: u64) -> Option<Patch> {
        let (stub, layout) = emit::write(&region, stub_address, gate)?;
        let overwrite = emit::overwrite(&region, stub_address)?;
        Some(Patch { region, layout, overwrite, stub_address, stub })
    }
}
