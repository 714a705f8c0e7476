//! Which bytes of a site make room for the jump.
//!
//! Three forms, the least dangerous first:
//!
//! 1. *Before*: one instruction of at least five bytes right before the `syscall` (`mov $imm32,%eax` nearly always). The
//!    `syscall` itself stays: whoever branches to it is caught by Syscall User Dispatch as ever; threads that are in the
//!    call come back behind it as ever; no instruction starts inside the overwritten bytes, so nothing can enter them.
//! 2. *After*: the `syscall` and what follows it. Threads that are in the call come back into the overwritten bytes and must
//!    be moved ([`crate::Stub::stub_address`]).
//! 3. *Around*: the `syscall` and shorter instructions before it.
//!
//! What remains undetected in forms 2 and 3: a jump table or pointer that leads behind (2) or to (3) the `syscall`. That takes a
//! label right at a call made by inline assembler; a marked entry (`endbr64`) there is seen and refused.

use crate::branch::BranchMap;
use crate::flags;
use crate::form;
use crate::patch::Patch;
use crate::place::Reach;
use crate::refusal::{Obstacle, Refusal};
use crate::region::{Region, SYSCALL};
use core::ops::Range;

/// Whether a range of addresses holds a byte that must not change.
pub type Forbidden<'a> = &'a dyn Fn(Range<u64>) -> bool;

/// Bytes chosen to be overwritten, not yet bound to a stub.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    region: Region,
    reach: Reach,
}

impl Plan {
    /// Address of the first byte to be overwritten.
    pub fn at(&self) -> u64 {
        self.region.at
    }

    /// The bytes to be overwritten.
    pub fn overwritten(&self) -> Range<u64> {
        self.region.at..self.region.at + u64::from(self.region.len)
    }

    /// Address of the `syscall`.
    pub fn site(&self) -> u64 {
        self.region.site()
    }

    /// Where a stub area may lie.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// Makes the patch for a stub at `stub` (see [`crate::StubAreas::place`]) whose calls go to `gate`.
    pub fn link(&self, stub: u64, gate: u64) -> Result<Patch, Refusal> {
        Patch::new(self.region, stub, gate).ok_or(Refusal::OutOfReach)
    }
}

/// Plans the site whose `syscall` is at `site`. `forbidden`: the vDSO, restartable sequences, the engine, and what other
/// patches forbid ([`crate::StubAreas::conflicts`]). A few microseconds.
pub fn plan(map: &BranchMap, site: u64, forbidden: Forbidden) -> Result<Plan, Refusal> {
    let code = &map.code();
    if code.at(site, SYSCALL.len()) != Some(&SYSCALL) {
        return Err(Refusal::NotSyscall);
    }
    let at = code.offset(site).ok_or(Refusal::NotSyscall)?;
    if forbidden(site..site + SYSCALL.len() as u64) {
        return Err(Refusal::Forbidden);
    }
    if SIGNAL_RETURNS.iter().any(|number| code.bytes[..at].ends_with(number)) {
        return Err(Refusal::SignalReturn);
    }
    if flags::live(code.bytes, at + SYSCALL.len()) {
        return Err(Refusal::FlagsLive);
    }
    let check = |region: Region| {
        let first = (region.at - code.address) as usize;
        if forbidden(region.at..region.at + u64::from(region.len)) {
            Err(Obstacle::Forbidden)
        } else if map.leads_into(first + 1, first + region.len as usize - 1) {
            Err(Obstacle::Branch)
        } else {
            Ok(Plan { region, reach: reach(&region) })
        }
    };
    let before = form::before(code, at).and_then(check);
    // A loop around the `syscall` alone would stay slow in the first form.
    match before {
        Ok(plan) if !map.leads_into(at, at) => return Ok(plan),
        _ => {}
    }
    match (form::after(code, at).and_then(check), before) {
        (Ok(plan), _) | (Err(_), Ok(plan)) => Ok(plan),
        (Err(after), Err(before)) => form::around(code, at).and_then(check).map_err(|around| {
            // Too short an instruction before the call leaves the third form to fail.
            Refusal::NoRoom { before: if before == Obstacle::NoRoom { around } else { before }, after }
        }),
    }
}

/// `mov $15,%eax` and `mov $15,%rax`: rt_sigreturn, which unwinders know by these bytes.
const SIGNAL_RETURNS: [&[u8]; 2] = [&[0xb8, 15, 0, 0, 0], &[0x48, 0xc7, 0xc0, 15, 0, 0, 0]];

/// Where the stub may lie, so that it reaches everything it refers to.
fn reach(region: &Region) -> Reach {
    let mut reach = Reach::around(region.at);
    for moved in region.before().chain(region.after()) {
        if let Some(target) = region.target(&moved) {
            reach = reach.and(Reach::around(target));
        }
    }
    reach
}
