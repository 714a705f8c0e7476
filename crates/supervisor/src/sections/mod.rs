//! The code sections that threads are in, as the program itself writes them down, read from outside. The program may have written anything.

mod own_time;
mod untold;

use crate::blocks::Block;
use crate::probes::Probes;
use crate::remote;
use bytemuck::Zeroable;
use libc::pid_t;
use outlast_image::control::ThreadBlocks;
use outlast_image::sections::{self as image, Frame, Named, Registry, DEPTH, FUNCTION, LEFT, REGISTRIES, SLOTS};
use outlast_interfaces::pmc::Count;
use outlast_interfaces::sect::{Inside, Left, Section, Thread};
use outlast_stacks::Process;
pub use own_time::OwnTime;
use std::mem::size_of;
use std::sync::atomic::Ordering::Acquire;
pub use untold::Untold;

/// A name is not longer.
const NAME: usize = 64;

/// What a thread has written down.
pub struct Slot {
    /// What the program calls the thread.
    number: u32,
    inside: Vec<(Inside, At)>,
    left: Vec<Left>,
}

/// Where a thread was when it entered a section, if that is a function.
#[derive(Clone, Copy)]
enum At {
    Anywhere,
    /// To go back to this address.
    Called {
        caller: u64,
    },
    /// With this stack.
    Stack(u64),
}

/// Those of all threads that have ever been in a section.
pub fn read(pid: pid_t, shown: &ThreadBlocks) -> Vec<Slot> {
    let registries = shown.sections.iter().map(|address| address.load(Acquire)).filter(|address| *address != 0);
    registries.flat_map(|address| read_registry(pid, address).unwrap_or_default()).collect()
}

fn read_registry(pid: pid_t, address: u64) -> Option<Vec<Slot>> {
    let mut registry = Registry::zeroed();
    remote::read_memory(pid, address, bytemuck::bytes_of_mut(&mut registry)).ok()?;
    if registry.magic != image::MAGIC {
        return None;
    }
    let mut slots = vec![image::Slot::zeroed(); (registry.used as usize).min(SLOTS)];
    let address = address.checked_add(size_of::<Registry>() as u64)?;
    remote::read_memory(pid, address, bytemuck::cast_slice_mut(&mut slots)).ok()?;
    Some(slots.iter().filter(|slot| slot.owner != 0).map(slot).collect())
}

fn slot(slot: &image::Slot) -> Slot {
    let frames = slot.frames.iter().take((slot.len as usize).min(DEPTH)).filter(|frame| frame.run != 0);
    let inside = |frame: &Frame| {
        let inside = Inside { section: section(frame.section), run: frame.run };
        let at = match frame.section & FUNCTION {
            0 => At::Anywhere,
            _ => At::Called { caller: frame.caller },
        };
        (inside, at)
    };
    let last = slot.exits as usize % LEFT;
    let (newer, older) = slot.left.split_at(last);
    let left = older.iter().chain(newer).filter(|left| left.run != 0);
    Slot {
        number: slot.owner as u32,
        inside: frames.map(inside).collect(),
        left: left.map(|left| Left { section: section(left.section), run: left.run, exit: left.exit }).collect(),
    }
}

fn section(word: u64) -> Section {
    match word & FUNCTION {
        0 => Section::Named(word),
        _ => Section::Function(word & !FUNCTION),
    }
}

/// The same by what the kernel calls the threads, with their counts.
pub fn of_threads(slots: &[Slot], blocks: &[Block], counts: &[Count], own_time: &OwnTime) -> Vec<Thread> {
    let of_block = |block: &Block| {
        // One in each registry, and what probes have seen: the program may have written that more are one thread's.
        let mut own = slots.iter().filter(|slot| slot.number == block.number).take(REGISTRIES + 1).peekable();
        own.peek()?;
        let spent = own_time.of(counts.iter().find(|count| count.thread == block.thread)?);
        let (mut inside, mut left) = (Vec::new(), Vec::new());
        for slot in own {
            inside.extend(slot.inside.iter().map(|(inside, _)| *inside));
            left.extend_from_slice(&slot.left);
        }
        Some(Thread { thread: block.thread, spent, inside, left })
    };
    blocks.iter().filter_map(of_block).collect()
}

/// What probes have seen.
pub fn probed(probes: &Probes, blocks: &[Block]) -> Vec<Slot> {
    let mut probed = Vec::new();
    for block in blocks {
        let (inside, left) = probes.of_thread(block.thread);
        if !inside.is_empty() || !left.is_empty() {
            let inside = inside.into_iter().map(|(inside, stack)| (inside, At::Stack(stack))).collect();
            probed.push(Slot { number: block.number, inside, left });
        }
    }
    probed
}

/// What a person calls it.
pub fn name(pid: pid_t, probed: &[String], section: Section) -> String {
    match section {
        Section::Named(address) => given(pid, address).unwrap_or_else(|| format!("{address:#x}")),
        Section::Function(address) => Process::look(pid).function(address),
        Section::Symbol(number) => probed.get(number as usize).cloned().unwrap_or_default(),
    }
}

/// The name that the program has for it.
fn given(pid: pid_t, address: u64) -> Option<String> {
    let mut named = Named::zeroed();
    remote::read_memory(pid, address, bytemuck::bytes_of_mut(&mut named)).ok()?;
    let len = match named.len as usize {
        0 => NAME,
        len => len.min(NAME),
    };
    let mut name = vec![0; len];
    // One at a time: behind its end nothing may be mapped.
    for (n, byte) in name.iter_mut().enumerate() {
        remote::read_memory(pid, named.name.checked_add(n as u64)?, std::slice::from_mut(byte)).ok()?;
        if *byte == 0 {
            break;
        }
    }
    let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
    let is_plain = !name.is_empty() && !name.iter().any(u8::is_ascii_control);
    is_plain.then(|| String::from_utf8_lossy(&name).into_owned())
}
