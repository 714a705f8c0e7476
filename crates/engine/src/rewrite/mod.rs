//! Call sites that trap often are rewritten to jump to the gate: a call costs 10 ns in place of a trap's microseconds.
//!
//! What may be overwritten, and by what, `outlast_rewrite` decides; here is when, and what follows from it. Stubs and patched
//! pages of text are saved with the program's memory, since signal frames and contexts may hold addresses in stubs; the
//! tables are made anew from them after a recovery.
//!
//! Nothing is ever writable and executable: see [`code`].

mod area;
mod code;
mod frames;
mod pages;
mod recover;
mod release;
mod segment;
mod site;

pub use code::{expect_threads, CodeMemory};
pub use frames::{to_program, to_stub};
pub use recover::recover;
pub use release::{changing, leave_child, leave_program, protecting, unmapped, unmapping};

use crate::control::control;
use crate::gate;
use crate::native::{self, way};
use crate::state::{object, Engine};
use crate::thread::{self, standing, Thread};
use crate::world;
use core::sync::atomic::Ordering::*;
use outlast_image::inject::option;
use outlast_rewrite::{plan, Patch, Plan, Refusal, RefusedSites, StubAreas};
use outlast_store::{MappedRegion, Store};

/// Stub areas at most: more than ten thousand sites.
const AREAS: usize = 16;

/// What is known of the program's call sites.
struct Rewriter {
    /// Nothing is rewritten any more: the system's policy forbids it.
    stopped: bool,
    traps: site::Traps,
    refused: RefusedSites<256>,
    segments: segment::Segments,
    stubs: StubAreas<AREAS>,
    /// The list of areas changed since the last commit.
    areas_changed: bool,
    pages: pages::Unsaved,
}

static mut REWRITER: Rewriter = Rewriter {
    stopped: false,
    traps: site::Traps::new(),
    refused: RefusedSites::new(),
    segments: segment::Segments::new(),
    stubs: StubAreas::new(),
    areas_changed: false,
    pages: pages::Unsaved::new(),
};

/// The rewriter of this process.
///
/// # Safety
/// As for `state::engine`: one thread, not re-entered.
unsafe fn rewriter() -> &'static mut Rewriter {
    let this = &raw mut REWRITER;
    &mut *this
}

/// Why a site is not rewritten now.
enum Obstacle {
    /// It may be later.
    NotYet,
    /// It will not be.
    Never,
    /// No site will be.
    Forbidden,
}

impl From<Refusal> for Obstacle {
    fn from(_: Refusal) -> Self {
        Obstacle::Never
    }
}

/// The present call arrived through SIGSYS: rewrites its site if that has become worth it. The call then goes on as if it had
/// arrived through the stub.
pub fn trapped(e: &mut Engine, t: &mut Thread) {
    // SAFETY: called by dispatch.
    let r = unsafe { rewriter() };
    let site = t.regs.rip.wrapping_sub(2);
    let traps = native::WAY.load(Relaxed) != way::GATE;
    if r.stopped
        || traps
        || e.args.options & option::NO_REWRITE != 0
        || !r.traps.is_hot(site)
        || r.refused.contains(site)
    {
        return;
    }
    match r.rewrite(e, site) {
        Ok(patch) => {
            t.regs.rip = patch.tail();
            r.count();
        }
        Err(Obstacle::NotYet) => {}
        Err(Obstacle::Never) => r.refused.insert(site),
        Err(Obstacle::Forbidden) => r.stopped = true,
    }
}

/// Adds to the commit being built what was patched since the last one.
pub fn save(store: &mut Store<'_, MappedRegion>) {
    // SAFETY: called by commit.
    let r = unsafe { rewriter() };
    r.pages.save(store);
    if r.areas_changed {
        let mut bases = [0u64; AREAS];
        let count = bases.iter_mut().zip(r.stubs.areas()).map(|(to, base)| *to = base).count();
        store.put(object::STUBS, 0, bytemuck::cast_slice(&bases[..count]));
        r.areas_changed = false;
    }
}

/// Does no other thread go on in the middle of what the patch overwrites? One that makes the very call goes on in the stub.
fn others_are_clear(own: &Thread, site: u64, patch: &Patch) -> bool {
    let len = patch.overwrite().replacement().len() as u64;
    let mut clear = true;
    each_other(own, |t| {
        let inside = t.regs.rip.wrapping_sub(patch.at()) < len && t.regs.rip != patch.at();
        clear &= !inside || makes_call(t, site);
    });
    clear
}

/// Is the thread at the gate with the call of this site?
fn makes_call(t: &Thread, site: u64) -> bool {
    t.regs.rip == site + 2 && t.standing.load(Acquire) == standing::IN_CALL
}

/// Threads that make the call of the site that was patched go on in its stub.
fn send_to_stub(own: &Thread, site: u64, patch: &Patch) {
    each_other(own, |t| {
        if makes_call(t, site) {
            t.regs.rip = patch.tail();
            t.is_fresh = true;
        }
    });
}

fn each_other(own: &Thread, mut f: impl FnMut(&mut Thread)) {
    if !world::has_several() {
        return;
    }
    world::each(|place| {
        if place != own.place {
            // SAFETY: the world is stopped.
            f(unsafe { thread::at(place) });
        }
    });
}

impl Rewriter {
    fn rewrite(&mut self, e: &mut Engine, site: u64) -> Result<Patch, Obstacle> {
        if self.stubs.stub_at(site).is_some() {
            // A call made once more, in its stub.
            return Err(Obstacle::Never);
        }
        if !self.pages.has_room() {
            return Err(Obstacle::NotYet);
        }
        let map = self.segments.map_of(site)?;
        let plan = plan(&map, site, &|range| self.stubs.conflicts(range))?;
        let stub = match self.stubs.place(&plan) {
            Err(Refusal::Full) => {
                self.add_area(e, &plan)?;
                self.stubs.place(&plan)?
            }
            other => other?,
        };
        let written =
            plan.link(stub, gate::address()).map_err(Obstacle::from).and_then(|patch| self.write(site, &patch));
        if written.is_err() {
            // Nobody has seen the stub.
            self.stubs.drop_range(plan.overwritten());
        }
        written
    }

    fn add_area(&mut self, e: &mut Engine, plan: &Plan) -> Result<(), Obstacle> {
        if !self.stubs.has_room() {
            return Err(Obstacle::Never);
        }
        let base = area::map(plan, (e.kernel.start_brk, e.kernel.brk))?;
        self.stubs.add(base);
        (self.areas_changed, e.maps_dirty) = (true, true);
        Ok(())
    }

    /// Writes the patch while no other thread runs, or goes on in the middle of what is overwritten.
    fn write(&mut self, site: u64, patch: &Patch) -> Result<Patch, Obstacle> {
        // SAFETY: at the gate.
        let t = unsafe { thread::current() };
        world::stop(t);
        let written = match others_are_clear(t, site, patch) {
            true => self.write_stopped(patch),
            false => Err(Obstacle::NotYet),
        };
        if written.is_ok() && world::has_several() {
            send_to_stub(t, site, patch);
            code::serialize_all();
        }
        world::resume();
        written
    }

    /// The stub first, whole; then the program's bytes. All threads are in the engine or parked, so the plan's strategies for
    /// code that is being executed are not needed; a kill in between leaves the last commit.
    fn write_stopped(&mut self, patch: &Patch) -> Result<Patch, Obstacle> {
        let overwrite = patch.overwrite();
        let mut now = [0; outlast_rewrite::MAX_PATCH];
        let now = &mut now[..overwrite.expected().len()];
        if !crate::user::read_bytes(patch.at(), now) || !overwrite.still_valid(now) {
            return Err(Obstacle::Never);
        }
        let memory = CodeMemory::open().ok_or(Obstacle::Never)?;
        if !memory.write(patch.stub_address, &patch.stub) || !memory.write(patch.at(), overwrite.replacement()) {
            return Err(Obstacle::Forbidden);
        }
        self.pages.add(patch.stub_address, patch.stub.len());
        self.pages.add(patch.at(), overwrite.replacement().len());
        Ok(*patch)
    }

    /// Tells the control page how many sites are rewritten.
    fn count(&self) {
        control().rewritten_sites.store(self.stubs.len() as u64, Relaxed);
    }
}
