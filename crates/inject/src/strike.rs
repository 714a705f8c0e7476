//! What a fault does to a stopped thread of the target.

use crate::branch;
use crate::campaign::{Area, Fault, Kind};
use crate::debug_register::Watch;
use crate::liveness;
use crate::memory_map::{self, is_engine};
use crate::ptrace::{read, registers, set_registers, write};
use crate::remote_call;
use crate::symbols;
use crate::tracee::Tracee;
use crate::{call_numbers, registers};
use fastrand::Rng;
use libc::pid_t;
use outlast_image::layout::{ENGINE_FDS, ENGINE_FD_CEILING, HIDING_FDS};
use outlast_supervisor::processes;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::time::{Instant, SystemTime};

/// Whose state was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The program's own.
    Program,
    /// The engine's, or the program's while the engine served a call of its.
    Engine,
    /// The program's, while the kernel served a call of its.
    Kernel,
    /// No thread's in particular.
    Process,
}

/// A fault that struck.
#[derive(Clone, Debug)]
pub struct Struck {
    pub at: SystemTime,
    pub place: Place,
    pub what: String,
    /// Whether it took effect, as far as that can be known.
    pub activated: Option<bool>,
    /// What to look at to know that.
    pub watch: Option<(u64, Watch)>,
}

impl Struck {
    pub fn now(place: Place, what: String, activated: Option<bool>) -> Self {
        Self { at: SystemTime::now(), place, what, activated, watch: None }
    }
}

/// Where a stopped thread stands.
pub fn place_of(tid: pid_t) -> Result<Place, Errno> {
    let registers = registers(tid)?;
    Ok(match registers.rip {
        rip if is_engine(rip) => Place::Engine,
        _ if registers.orig_rax as i64 >= 0 => Place::Kernel,
        _ => Place::Program,
    })
}

/// How many instructions may pass before the conditional jump that is to go the other way.
const STEPS: usize = 3_000;

/// Strikes a stopped thread. None: there was nothing to strike.
pub fn strike(
    tracee: &mut Tracee,
    tid: pid_t,
    fault: &Fault,
    rng: &mut Rng,
    deadline: Instant,
) -> Result<Option<Struck>, Errno> {
    let place = place_of(tid)?;
    match fault.kind {
        Kind::Register => register(tracee, tid, place, fault, rng, deadline).map(Some),
        Kind::Memory => memory(tracee, tid, fault, rng),
        Kind::Branch => branch(tracee, tid, deadline),
        Kind::Loop => endless(tracee, tid, place),
        Kind::Skip => skip(tracee, tid, place),
        Kind::Thread => thread(tracee, tid, place),
        Kind::Descriptor => descriptor(tracee, tid, rng, deadline),
        Kind::Signal => {
            let name = fault.signal.as_deref().unwrap_or("SIGSEGV");
            let signal = call_numbers::signal(name).ok_or(Errno::INVAL)?;
            // SAFETY: plain system call on a thread that is traced by this one, so that the number is its own.
            unsafe { libc::syscall(libc::SYS_tgkill, tracee.pid, tid, signal) };
            Ok(Some(Struck::now(place, name.into(), Some(true))))
        }
        Kind::Limit | Kind::FailedCall | Kind::ShortCall | Kind::SlowCall => Err(Errno::INVAL),
    }
}

fn register(
    tracee: &mut Tracee,
    tid: pid_t,
    place: Place,
    fault: &Fault,
    rng: &mut Rng,
    deadline: Instant,
) -> Result<Struck, Errno> {
    let mut all = registers(tid)?;
    let (mut what, mut changed) = (Vec::new(), Vec::new());
    let times = if fault.each { fault.registers.len() } else { fault.bits as usize };
    for at in 0..times {
        let number = match fault.registers.as_slice() {
            [] => rng.usize(0..registers::GENERAL.len()),
            names if fault.each => registers::numbered(&names[at]).ok_or(Errno::INVAL)?,
            names => registers::numbered(&names[rng.usize(0..names.len())]).ok_or(Errno::INVAL)?,
        };
        let bit = rng.u32(0..64);
        *registers::at(&mut all, number) ^= 1 << bit;
        changed.push(registers::name(number));
        what.push(format!("{} bit {bit}", registers::name(number)));
    }
    set_registers(tid, &all)?;
    let struck = Struck::now(place, what.join(", "), None);
    let activated = match place {
        Place::Program => liveness::is_used(tracee, tid, &changed, deadline),
        _ => None,
    };
    Ok(Struck { activated, ..struck })
}

fn memory(tracee: &Tracee, tid: pid_t, fault: &Fault, rng: &mut Rng) -> Result<Option<Struck>, Errno> {
    let drawn = rng.u32(0..64);
    let (address, area) = match (&fault.object, fault.area) {
        (Some(object), _) => {
            let Some(base) = symbols::find(tracee.pid, object) else { return Ok(None) };
            (Some(base + u64::from(fault.bit.unwrap_or(drawn) / 8)), None)
        }
        (None, area) => (somewhere(tracee.pid, tid, area.unwrap_or(Area::Heap), rng)?, area),
    };
    let Some(address) = address else { return Ok(None) };
    let mut byte = [0];
    read(tracee.pid, address, &mut byte).map_err(|_| Errno::FAULT)?;
    let mut bits = Vec::new();
    for n in 0..fault.bits.min(8) {
        let bit = (fault.bit.unwrap_or(drawn) + n) % 8;
        byte[0] ^= 1 << bit;
        bits.push(bit.to_string());
    }
    write(tracee.pid, address, &byte).map_err(|_| Errno::FAULT)?;
    let what = format!("bit {} at {address:#x}", bits.join(", "));
    let watch = match area {
        Some(Area::Text) => (address, Watch::Execution),
        _ => (address, Watch::Access),
    };
    Ok(Some(Struck { watch: Some(watch), ..Struck::now(Place::Program, what, None) }))
}

/// How far from where a thread executes text is hit, and how far above its stack pointer the stack.
const NEAR: u64 = 16 << 10;

/// An address in an area: near to where the thread is, or on a page that holds anything.
fn somewhere(pid: pid_t, tid: pid_t, area: Area, rng: &mut Rng) -> Result<Option<u64>, Errno> {
    let registers = registers(tid)?;
    let all: Vec<_> = memory_map::of(pid).into_iter().filter(|m| m.area() == Some(area)).collect();
    let near = match area {
        Area::Text => Some((registers.rip.saturating_sub(NEAR / 2), registers.rip)),
        Area::Stack => Some((registers.rsp, registers.rsp)),
        _ => None,
    };
    if let Some((from, inside)) = near {
        if let Some(m) = memory_map::of(pid).into_iter().find(|m| m.range.contains(&inside) && m.area().is_some()) {
            let from = from.max(m.range.start);
            return Ok(Some(rng.u64(from..(from + NEAR).min(m.range.end))));
        }
    }
    let whole: u64 = all.iter().map(|m| m.range.end - m.range.start).sum();
    for _ in 0..if whole > 0 { 64 } else { 0 } {
        let mut at = rng.u64(0..whole);
        for mapping in &all {
            let length = mapping.range.end - mapping.range.start;
            if at >= length {
                at -= length;
                continue;
            }
            let address = mapping.range.start + at;
            let mut page = vec![0; 4096];
            if read(pid, address & !0xfff, &mut page).is_ok() && page.iter().any(|byte| *byte != 0) {
                return Ok(Some(address));
            }
            break;
        }
    }
    Ok(None)
}

fn branch(tracee: &mut Tracee, tid: pid_t, deadline: Instant) -> Result<Option<Struck>, Errno> {
    for _ in 0..STEPS {
        let mut all = registers(tid)?;
        let mut code = [0; 6];
        if !is_engine(all.rip) && read(tracee.pid, all.rip, &mut code).is_ok() {
            if let Some(other) = branch::other_way(&code, all.rip, all.eflags) {
                let what = format!("jump at {:#x} goes to {other:#x}", all.rip);
                all.rip = other;
                set_registers(tid, &all)?;
                return Ok(Some(Struck::now(Place::Program, what, Some(true))));
            }
        }
        tracee.step(tid, deadline)?;
    }
    Ok(None)
}

fn endless(tracee: &Tracee, tid: pid_t, place: Place) -> Result<Option<Struck>, Errno> {
    let at = registers(tid)?.rip;
    write(tracee.pid, at, &[0xeb, 0xfe]).map_err(|_| Errno::FAULT)?;
    Ok(Some(Struck::now(place, format!("jump to itself at {at:#x}"), Some(true))))
}

/// At a function's first instruction its return address is on top of the stack.
fn skip(tracee: &Tracee, tid: pid_t, place: Place) -> Result<Option<Struck>, Errno> {
    let mut all = registers(tid)?;
    let mut word = [0; 8];
    read(tracee.pid, all.rsp, &mut word).map_err(|_| Errno::FAULT)?;
    let what = format!("function at {:#x} returns at once", all.rip);
    (all.rip, all.rsp, all.rax) = (u64::from_ne_bytes(word), all.rsp + 8, 0);
    set_registers(tid, &all)?;
    Ok(Some(Struck::now(place, what, Some(true))))
}

fn thread(tracee: &mut Tracee, tid: pid_t, place: Place) -> Result<Option<Struck>, Errno> {
    let is_first = tid == tracee.pid;
    remote_call::leave_at(tracee, tid, libc::SYS_exit)?;
    let what = if is_first { "the first thread ends" } else { "a thread ends" };
    Ok(Some(Struck::now(place, what.into(), Some(true))))
}

fn descriptor(tracee: &mut Tracee, tid: pid_t, rng: &mut Rng, deadline: Instant) -> Result<Option<Struck>, Errno> {
    let place = place_of(tid)?;
    let own = ENGINE_FD_CEILING - ENGINE_FDS - HIDING_FDS;
    let mut open = processes::descriptors(tracee.pid);
    open.retain(|fd| *fd < own);
    open.sort_unstable();
    if open.is_empty() {
        return Ok(None);
    }
    let fd = open[rng.usize(0..open.len())];
    let result = remote_call::make(tracee, tid, libc::SYS_close, [fd as u64, 0, 0], deadline)?;
    Ok((result == 0).then(|| Struck::now(place, format!("descriptor {fd} closed"), None)))
}
