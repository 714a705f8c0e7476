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

use crate::branch::Targets;
use crate::code::Code;
use crate::flags;
use crate::form;
use crate::patch::Patch;
use crate::place::Reach;
use crate::refusal::{Obstacle, Refusal};
use crate::region::{Region, SYSCALL};
use core::ops::Range;

/// How many sites share one pass over the code.
pub const BATCH: usize = 32;
/// Ranges watched for a site: each form, and the `syscall` itself.
const WATCHED: usize = BATCH * 4;

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

    /// Makes the patch for a stub at `stub` (see [`crate::StubAreas::place`]) whose calls go to `gate`.
    pub fn link(&self, stub: u64, gate: u64) -> Result<Patch, Refusal> {
        Patch::new(self.region, stub, gate).ok_or(Refusal::OutOfReach)
    }
}

/// Plans one site. `forbidden` says whether a range of addresses holds a byte that must not change: the vDSO, restartable
/// sequences, the engine, and what other patches overwrite ([`crate::StubAreas::touching`]).
pub fn plan(code: &Code, site: u64, forbidden: Forbidden) -> Result<Plan, Refusal> {
    let mut plans = [Err(Refusal::NotSyscall)];
    plan_batch(code, &[site], forbidden, &mut plans);
    plans[0]
}

/// Plans every site of `sites` into the same place of `plans` (as long, at least), [`BATCH`] of them with one pass over
/// `code`. Plans of one batch may touch the same bytes: [`crate::StubAreas::place`] refuses the second.
pub fn plan_batch(code: &Code, sites: &[u64], forbidden: Forbidden, plans: &mut [Result<Plan, Refusal>]) {
    for (sites, plans) in sites.chunks(BATCH).zip(plans.chunks_mut(BATCH)) {
        let mut targets = Targets::<WATCHED>::default();
        let mut choices = [const { None::<Choice> }; BATCH];
        for ((site, plan), choice) in sites.iter().zip(&mut *plans).zip(&mut choices) {
            match Choice::new(code, *site, forbidden) {
                Ok(made) => *choice = Some(made.watch(code, &mut targets)),
                Err(refusal) => *plan = Err(refusal),
            }
        }
        targets.scan(code.bytes);
        for (choice, plan) in choices.iter().zip(plans) {
            if let Some(choice) = choice {
                *plan = choice.decide(&targets);
            }
        }
    }
}

/// The forms possible at a site, each with the number of its watched range.
struct Choice {
    forms: [Result<(Region, usize), Obstacle>; 3],
    /// Watches the `syscall` itself.
    at_site: usize,
    site: usize,
}

const BEFORE: usize = 0;
const AFTER: usize = 1;
const AROUND: usize = 2;

impl Choice {
    fn new(code: &Code, site: u64, forbidden: Forbidden) -> Result<Choice, Refusal> {
        if code.at(site, SYSCALL.len()) != Some(&SYSCALL) {
            return Err(Refusal::NotSyscall);
        }
        let at = code.offset(site).ok_or(Refusal::NotSyscall)?;
        if forbidden(site..site + SYSCALL.len() as u64) {
            return Err(Refusal::Forbidden);
        }
        if code.bytes[..at].ends_with(&[0xb8, 15, 0, 0, 0])
            || code.bytes[..at].ends_with(&[0x48, 0xc7, 0xc0, 15, 0, 0, 0])
        {
            return Err(Refusal::SignalReturn);
        }
        if flags::live(code.bytes, at + SYSCALL.len()) {
            return Err(Refusal::FlagsLive);
        }
        let forms = [form::before(code, at), form::after(code, at), form::around(code, at)].map(|form| {
            let region: Region = form?;
            if forbidden(region.at..region.at + u64::from(region.len)) {
                Err(Obstacle::Forbidden)
            } else {
                Ok((region, 0))
            }
        });
        Ok(Choice { forms, at_site: 0, site: at })
    }

    fn watch(mut self, code: &Code, targets: &mut Targets<WATCHED>) -> Choice {
        // There is room: WATCHED counts every call of `watch` here.
        self.at_site = targets.watch(self.site, self.site).unwrap_or(0);
        for (region, number) in self.forms.iter_mut().flatten() {
            let first = (region.at - code.address) as usize;
            *number = targets.watch(first + 1, first + region.len as usize - 1).unwrap_or(0);
        }
        self
    }

    fn decide(&self, targets: &Targets<WATCHED>) -> Result<Plan, Refusal> {
        let checked = self.forms.map(|form| match form {
            Ok((_, number)) if targets.hit(number) => Err(Obstacle::Branch),
            Ok((region, _)) => Ok(region),
            Err(obstacle) => Err(obstacle),
        });
        // A loop around the `syscall` itself would stay slow in the first form.
        let order = if targets.hit(self.at_site) { [AFTER, BEFORE, AROUND] } else { [BEFORE, AFTER, AROUND] };
        for form in order {
            if let Ok(region) = checked[form] {
                return Ok(Plan { region, reach: reach(&region) });
            }
        }
        let [before, after, around] = checked.map(|form| form.err().unwrap_or(Obstacle::NoRoom));
        // Too short an instruction before the call leaves the third form to fail.
        Err(Refusal::NoRoom { before: if before == Obstacle::NoRoom { around } else { before }, after })
    }
}

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
