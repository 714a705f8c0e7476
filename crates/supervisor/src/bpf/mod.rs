//! The bpf(2) system call, as far as it is needed here.

pub mod assembly;
pub mod types;

use crate::foreign_filter;
use bytemuck::{Pod, Zeroable};
use outlast_filter::needs::wish;
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const MAP_DELETE: libc::c_int = 3;
const MAP_NEXT_KEY: libc::c_int = 4;
const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const MAP_FREEZE: libc::c_int = 22;
const LINK_CREATE: libc::c_int = 28;

const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_LRU_HASH: u32 = 9;
const PROG_TYPE_KPROBE: u32 = 2;
const TRACE_UPROBE_MULTI: u32 = 48;
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
    prog_ifindex: u32,
    expected_attach_type: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
struct MapElement {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default, Pod, Zeroable)]
struct LinkUprobes {
    prog_fd: u32,
    target_fd: u32,
    attach_type: u32,
    flags: u32,
    path: u64,
    offsets: u64,
    ref_ctr_offsets: u64,
    cookies: u64,
    count: u32,
    uprobe_flags: u32,
    pid: u32,
    padding: u32,
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
    create(name, MAP_TYPE_ARRAY, 4, value_size, 1, F_MMAPABLE)
}

/// Makes an array of one element, which programs can address. Needs CAP_BPF.
pub fn create_array(name: &[u8], value_size: usize) -> Result<OwnedFd, Errno> {
    create(name, MAP_TYPE_ARRAY, 4, value_size, 1, 0)
}

/// Makes a table that forgets what was not used for long when it is full. Needs CAP_BPF.
pub fn create_table(name: &[u8], key_size: usize, value_size: usize, entries: u32) -> Result<OwnedFd, Errno> {
    create(name, MAP_TYPE_LRU_HASH, key_size, value_size, entries, 0)
}

fn create(
    name: &[u8],
    map_type: u32,
    key: usize,
    value: usize,
    max_entries: u32,
    map_flags: u32,
) -> Result<OwnedFd, Errno> {
    let (key_size, value_size) = (key as u32, value as u32);
    let mut attr = MapCreate { map_type, key_size, value_size, max_entries, map_flags, ..MapCreate::default() };
    attr.map_name[..name.len()].copy_from_slice(name);
    // SAFETY: the attributes hold no addresses.
    unsafe { descriptor(MAP_CREATE, &attr) }
}

/// Reads an element of a map whose keys and values are of these types.
pub fn lookup<K: Pod, V: Pod>(map: BorrowedFd<'_>, key: &K) -> Result<V, Errno> {
    let mut value = V::zeroed();
    let (key, to) = (std::ptr::from_ref(key) as u64, std::ptr::from_mut(&mut value) as u64);
    let attr = MapElement { map_fd: map.as_raw_fd() as u32, key, value: to, ..MapElement::default() };
    // SAFETY: the kernel reads the key and writes the value, which live until the call returns and are as long as the map's.
    unsafe { call(MAP_LOOKUP, &attr) }.map(|_| value)
}

/// Writes one.
pub fn update<K: Pod, V: Pod>(map: BorrowedFd<'_>, key: &K, value: &V) -> Result<(), Errno> {
    let (key, value) = (std::ptr::from_ref(key) as u64, std::ptr::from_ref(value) as u64);
    let attr = MapElement { map_fd: map.as_raw_fd() as u32, key, value, ..MapElement::default() };
    // SAFETY: the kernel reads key and value, which live until the call returns and are as long as the map's.
    unsafe { call(MAP_UPDATE, &attr) }.map(drop)
}

/// Removes an element of a map with keys of this type; that there is none is no error.
pub fn delete<K: Pod>(map: BorrowedFd<'_>, key: &K) -> Result<(), Errno> {
    let key = std::ptr::from_ref(key) as u64;
    let attr = MapElement { map_fd: map.as_raw_fd() as u32, key, ..MapElement::default() };
    // SAFETY: the kernel reads the key, which lives until the call returns and is as long as the map's.
    match unsafe { call(MAP_DELETE, &attr) } {
        Err(Errno::NOENT) => Ok(()),
        other => other.map(drop),
    }
}

/// Removes all elements of a table with keys of this type.
pub fn clear<K: Pod>(map: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut key = K::zeroed();
    loop {
        // No key: the first one. What answers stands where values do.
        let value = std::ptr::from_mut(&mut key) as u64;
        let attr = MapElement { map_fd: map.as_raw_fd() as u32, value, ..MapElement::default() };
        // SAFETY: the kernel writes a key, which lives until the call returns and is as long as the map's.
        match unsafe { call(MAP_NEXT_KEY, &attr) } {
            Err(Errno::NOENT) => return Ok(()),
            other => other?,
        };
        delete(map, &key)?;
    }
}

/// Has the kernel run the program whenever somebody executes one of these places of a file, with the cookie that belongs to the place, for as long as
/// the descriptor is open. Needs CAP_BPF and CAP_PERFMON.
pub fn attach_probes(program: BorrowedFd<'_>, file: &CStr, places: &[u64], cookies: &[u64]) -> Result<OwnedFd, Errno> {
    assert_eq!(places.len(), cookies.len());
    let attr = LinkUprobes {
        prog_fd: program.as_raw_fd() as u32,
        attach_type: TRACE_UPROBE_MULTI,
        path: file.as_ptr() as u64,
        offsets: places.as_ptr() as u64,
        cookies: cookies.as_ptr() as u64,
        count: places.len() as u32,
        ..LinkUprobes::default()
    };
    // SAFETY: the kernel reads path, places and as many cookies, which live until the call returns.
    unsafe { descriptor(LINK_CREATE, &attr) }
}

/// From now on only BPF programs can write to the map; nobody may have it mapped writable.
pub fn freeze(map: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: the attribute is the descriptor.
    unsafe { call(MAP_FREEZE, &(map.as_raw_fd() as u64)) }.map(drop)
}

/// Loads a program for raw tracepoints. Needs CAP_BPF and CAP_PERFMON.
pub fn load(name: &[u8], program: &[Instruction], license: &CStr) -> Result<OwnedFd, Errno> {
    load_type(PROG_TYPE_RAW_TRACEPOINT, 0, name, program, license)
}

/// Loads a program for [`attach_probes`]. Needs CAP_BPF and CAP_PERFMON, and Linux 6.6.
pub fn load_probe(name: &[u8], program: &[Instruction], license: &CStr) -> Result<OwnedFd, Errno> {
    load_type(PROG_TYPE_KPROBE, TRACE_UPROBE_MULTI, name, program, license)
}

fn load_type(
    prog_type: u32,
    expected_attach_type: u32,
    name: &[u8],
    program: &[Instruction],
    license: &CStr,
) -> Result<OwnedFd, Errno> {
    let mut attr = ProgLoad {
        prog_type,
        expected_attach_type,
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
    if !foreign_filter::lets(wish::BPF) {
        return Err(Errno::PERM);
    }
    // SAFETY: as promised; the size is that of `attr`.
    let r = unsafe { libc::syscall(libc::SYS_bpf, command, attr, std::mem::size_of::<T>()) };
    match r {
        0.. => Ok(r as libc::c_int),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
    }
}
