//! Call stacks of a process that is stopped or stands still, seen from outside: nothing is run in it.
//!
//! Frames are found by the call frame information in the files that it maps (`.eh_frame`, System V ABI for x86-64, §3.7, and
//! DWARF 5, §6.4), by frame pointers where there is none. Whatever a file or the stack says is taken for what it is worth: a damaged one makes a
//! stack short or wrong, and nothing else.

mod maps;
mod module;
pub mod symbols;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Unwinder};
use module::Module;
use std::fmt::{self, Display};

/// More frames are not looked for: a recursion has no end.
const MOST_FRAMES: usize = 64;

/// Where a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// What RBP holds: a frame's base, or anything else.
    pub bp: u64,
}

/// One of the functions that a thread is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub address: u64,
    /// An address of the function's for sure: `address` itself, or of the call that goes back there.
    pub within: u64,
    /// The name of the file that the address is mapped from, and how far from where that begins; none: made at run time.
    pub file: Option<(String, u64)>,
    /// The function, demangled, and how far from its beginning.
    pub function: Option<(String, u64)>,
}

/// As debuggers show it: `main+0x1c (answers+0x11cc)`.
impl Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.function, &self.file) {
            (Some((function, offset)), Some((file, at))) => write!(f, "{function}+{offset:#x} ({file}+{at:#x})"),
            (_, Some((file, at))) => write!(f, "{file}+{at:#x}"),
            _ => write!(f, "{:#x}", self.address),
        }
    }
}

/// Functions that a thread is in, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    pub frames: Vec<Frame>,
    /// It ends where the thread began. If not, there are others that cannot be told.
    pub is_whole: bool,
}

/// The files that a process executes, for as many stacks of it as are wanted.
pub struct Process {
    modules: Vec<Module>,
    unwinder: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64,
}

impl Process {
    /// Looks at what the process maps now.
    pub fn look(pid: i32) -> Self {
        let mut unwinder = UnwinderX86_64::new();
        let modules = maps::executed(pid).into_iter().filter_map(Module::open).collect::<Vec<_>>();
        modules.iter().for_each(|module| unwinder.add_module(module.unwinding()));
        Self { modules, unwinder, cache: CacheX86_64::new() }
    }

    /// The stack of a thread. `read`: a word of the process's memory.
    pub fn stack(&mut self, at: At, mut read: impl FnMut(u64) -> Option<u64>) -> Stack {
        let mut word = |address| read(address).ok_or(());
        let start = UnwindRegsX86_64::new(at.ip, at.sp, at.bp);
        let mut frames = self.unwinder.iter_frames(at.ip, start, &mut self.cache, &mut word);
        let mut addresses = Vec::new();
        let is_whole = loop {
            match frames.next() {
                Ok(Some(frame)) if addresses.len() < MOST_FRAMES => addresses.push(frame),
                end => break matches!(end, Ok(None)),
            }
        };
        Stack { frames: addresses.into_iter().map(|frame| self.frame(frame)).collect(), is_whole }
    }

    /// The function at this address: `parse (answers+0x11cc)`.
    pub fn function(&self, address: u64) -> String {
        let frame = self.frame(FrameAddress::from_instruction_pointer(address));
        match (&frame.function, &frame.file) {
            (Some((function, 0)), Some((file, at))) => format!("{function} ({file}+{at:#x})"),
            _ => frame.to_string(),
        }
    }

    fn frame(&self, frame: FrameAddress) -> Frame {
        // The instruction behind a call may be another function's.
        let within = frame.address_for_lookup();
        let address = frame.address();
        let module = self.modules.iter().find(|module| module.range().contains(&within));
        let file = module.map(|module| (module.name().to_string(), address.wrapping_sub(module.base())));
        let function = module.and_then(|module| module.function(within));
        Frame { address, within, file, function: function.map(|(name, start)| (name, address - start)) }
    }
}
