//! The bpf(2) system call, as far as it is needed here.

pub mod assembly;
pub mod types;

use bytemuck::{Pod, Zeroable};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const MAP_CREATE: libc::c_int = 0;
const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const MAP_FREEZE: libc::c_int = 22;

const MAP_TYPE_ARRAY: u32 = 2;
const PROG_TYPE_RAW_TRACEPOINT: u32 = 17;
const RUN_ON_CPU: u32 = 1 << 0;
/// The map can be mapped into memory.
const F_MMAPABLE: u32 = 1 << 10;

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Instruction {
    pub code: u8,
    /// Destination register in the low half, source register in the high one.
    pub registers: u8,
    pub offset: i16,
    pub immediate: i32,
}

/// Pieces of `union bpf_attr`; the kernel takes what is not given as zero.
#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
struct ProgLoad {
    prog_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
struct RawTracepointOpen {
    name: u64,
    prog_fd: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
struct TestRun {
    prog_fd: u32,
    retval: u32,
    data_size: [u32; 2],
    data: [u64; 2],
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    reserved: u32,
}

/// Makes an array of one element that processes can map. Needs CAP_BPF.
pub fn create_mappable(name: &[u8], value_size: usize) -> Result<OwnedFd, Errno> {
    let mut attr = MapCreate {
        map_type: MAP_TYPE_ARRAY,
        key_size: 4,
        value_size: value_size as u32,
        max_entries: 1,
        map_flags: F_MMAPABLE,
        ..MapCreate::default()
    };
    attr.map_name[..name.len()].copy_from_slice(name);
    // SAFETY: the attributes hold no addresses.
    unsafe { descriptor(MAP_CREATE, &attr) }
}

/// From now on only BPF programs can write to the map; nobody may have it mapped writable.
pub fn freeze(map: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: the attribute is the descriptor.
    unsafe { call(MAP_FREEZE, &(map.as_raw_fd() as u64)) }.map(drop)
}

/// Loads a program for raw tracepoints. Needs CAP_BPF and CAP_PERFMON.
pub fn load(name: &[u8], program: &[Instruction], license: &CStr) -> Result<OwnedFd, Errno> {
    let mut attr = ProgLoad {
        prog_type: PROG_TYPE_RAW_TRACEPOINT,
        instruction_count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
        ..ProgLoad::default()
    };
    attr.prog_name[..name.len()].copy_from_slice(name);
    // SAFETY: the kernel reads the instructions and the license, which live until the call returns.
    unsafe { descriptor(PROG_LOAD, &attr) }
}

/// Runs a program for raw tracepoints once, now, with this context, which is not empty: here, or on this processor, in the middle of whatever that does.
pub fn run(program: BorrowedFd<'_>, context: &[u64], processor: Option<u32>) -> Result<(), Errno> {
    let attr = TestRun {
        flags: if processor.is_some() { RUN_ON_CPU } else { 0 },
        cpu: processor.unwrap_or(0),
        prog_fd: program.as_raw_fd() as u32,
        context_size_in: std::mem::size_of_val(context) as u32,
        context_in: context.as_ptr() as u64,
        ..TestRun::default()
    };
    // SAFETY: the kernel reads the context, which lives until the call returns, and sends nothing back.
    unsafe { call(PROG_TEST_RUN, &attr) }.map(drop)
}

/// Attaches a program to a raw tracepoint for as long as the descriptor, or a copy of it, is open anywhere.
pub fn attach(program: BorrowedFd<'_>, tracepoint: &CStr) -> Result<OwnedFd, Errno> {
    let attr = RawTracepointOpen { name: tracepoint.as_ptr() as u64, prog_fd: program.as_raw_fd() as u32, reserved: 0 };
    // SAFETY: the kernel reads the name, which lives until the call returns.
    unsafe { descriptor(RAW_TRACEPOINT_OPEN, &attr) }
}

/// # Safety
/// As `call`; the command is one that answers with a new descriptor.
unsafe fn descriptor<T: Pod>(command: libc::c_int, attr: &T) -> Result<OwnedFd, Errno> {
    // SAFETY: as promised; the descriptor is new, and nobody's yet.
    unsafe { call(command, attr).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// # Safety
/// The addresses in `attr` lead to what the command reads or writes there.
unsafe fn call<T: Pod>(command: libc::c_int, attr: &T) -> Result<libc::c_int, Errno> {
    // SAFETY: as promised; the size is that of `attr`.
    let r = unsafe { libc::syscall(libc::SYS_bpf, command, attr, std::mem::size_of::<T>()) };
    match r {
        0.. => Ok(r as libc::c_int),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}
