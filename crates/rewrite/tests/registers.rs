//! Patched code run: registers, flags, stack and results as without the patch.

#[path = "support/built.rs"]
mod built;
#[path = "support/machine.rs"]
mod machine;
mod support;

use built::{hex, plan_in, Built};
use machine::{Memory, State};
use outlast_rewrite::{Code, Patch};
use std::sync::Mutex;

/// `machine::run` is for one thread at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Code at the start of the memory, stubs at its end.
const ROOM: usize = 1 << 16;

/// Plans and links the only site of `code`.
fn patch(code: &Code, site: u64, memory: &Memory) -> Patch {
    let plan = plan_in(code, site, &|_| false).unwrap();
    plan.link(memory.address + ROOM as u64, machine::gate()).unwrap()
}

/// Runs `function` in `memory` with several arguments, patches it, runs it again, and compares; then puts it back.
fn same_when_patched(memory: &Memory, patch: &Patch, function: u64, arguments: &[[u64; 3]], flags: bool) {
    let _guard = ONE_AT_A_TIME.lock().unwrap();
    // SAFETY: the callers' code keeps rsp and makes harmless calls.
    let run = || arguments.iter().map(|set| unsafe { machine::run(function, State::new(*set)) }).collect::<Vec<_>>();
    let original = memory.bytes()[..ROOM].to_vec();
    let unpatched = run();
    let before = machine::calls();
    // SAFETY: no other thread knows this memory.
    unsafe { machine::apply(patch) };
    let patched = run();
    assert_eq!(machine::calls() - before, arguments.len() as u64);
    for (unpatched, patched) in unpatched.iter().zip(&patched) {
        assert_eq!(unpatched.kept(flags), patched.kept(flags));
    }
    // SAFETY: as above.
    unsafe { machine::overwrite(&patch.undo()) };
    assert_eq!(memory.bytes()[..ROOM], original[..]);
    assert_eq!(
        run().iter().map(|state| state.kept(flags)).collect::<Vec<_>>(),
        unpatched.iter().map(|state| state.kept(flags)).collect::<Vec<_>>()
    );
    assert_eq!(machine::calls() - before, arguments.len() as u64);
}

/// `before`, a system call, `after`: which must end in `ret`.
fn sequence(before: &str, after: &str, form: i64, arguments: &[[u64; 3]], flags: bool) {
    let memory = Memory::new(2 * ROOM);
    let built = Built::new(memory.address, &hex(before), &hex(after));
    // SAFETY: fresh memory.
    unsafe { machine::write(memory.address, &built.bytes) };
    let patch = patch(&built.code(), built.site, &memory);
    assert_eq!(built.site as i64 - patch.at() as i64, form);
    same_when_patched(&memory, &patch, memory.address, arguments, flags);
}

const NONE: &[[u64; 3]] = &[[0; 3]];
/// A descriptor that is none, and one that takes an empty write.
const WRITES: &[[u64; 3]] = &[[u64::MAX, 0, 0], [1, 0, 0], [2, 1, 0]];

#[test]
fn number_moved_into_the_stub() {
    sequence("b8 27 00 00 00", "c3", 5, NONE, false);
    sequence("48 c7 c0 6e 00 00 00", "48 3d 00 f0 ff ff c3", 7, NONE, true);
    sequence("b8 01 00 00 00", "48 3d 00 f0 ff ff 77 01 c3 48 f7 d8 c3", 5, WRITES, true);
}

#[test]
fn comparison_and_branch_moved_into_the_stub() {
    // mov $1,%eax behind a call that leaves no certain place for a jump: xor, inc.
    let one = "e8 00 00 00 00 48 83 c4 08 f9 ff c0 31 c0 ff c0";
    sequence(one, "48 3d 00 f0 ff ff 77 01 c3 48 f7 d8 c3", 0, WRITES, true);
    sequence(one, "3d 00 f0 ff ff 0f 87 01 00 00 00 c3 f7 d8 c3", 0, WRITES, true);
    sequence(one, "85 c0 78 01 c3 f7 d8 c3", 0, WRITES, true);
    sequence(one, "85 c0 0f 88 01 00 00 00 c3 f7 d8 c3", 0, WRITES, true);
    sequence(one, "83 f8 f7 0f 94 c2 c3", 0, WRITES, true);
}

#[test]
fn stack_and_memory_operands_moved_into_the_stub() {
    let getpid = "e8 00 00 00 00 48 83 c4 08 f9 31 c0 b0 27";
    // push, pop; mov to and from the red zone; lea and mov relative to rip
    sequence(getpid, "50 5a 48 89 d3 c3", 0, NONE, false);
    sequence(getpid, "48 89 44 24 f8 48 8b 54 24 f8 c3", 0, NONE, false);
    sequence(getpid, "48 8d 0d 10 00 00 00 48 89 ca c3", 0, NONE, false);
    sequence(getpid, "8b 15 02 00 00 00 85 d2 c3", 0, NONE, true);
    sequence(getpid, "eb 03 cc cc cc c3", 0, NONE, false);
    sequence(getpid, "c3 cc cc", 0, NONE, false);
    sequence("48 8d 35 20 00 00 00 b8 27 00 00 00", "c3", 5, NONE, false);
}

#[test]
fn short_instructions_before_moved_into_the_stub() {
    sequence("b8 27 00 00 00 89 c0 6a 01 5b", "53 e8 00 00 00 00 48 83 c4 10 c3", 3, NONE, false);
}

/// Functions of the C library as they are, copied.
#[test]
fn real_functions_do_the_same() {
    let libc = support::binaries().into_iter().next().unwrap();
    let mut done = 0;
    for name in ["getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "umask", "getpgrp"] {
        let Some(function) = libc.functions.iter().find(|function| function.name.trim_start_matches('_') == name)
        else {
            continue;
        };
        let (text, start) = libc.locate(function.address).unwrap();
        // With what lies before it, at the same alignment.
        let before = 512 + start % 512;
        let memory = Memory::new(2 * ROOM);
        // SAFETY: fresh memory.
        unsafe { machine::write(memory.address, &text.bytes[start - before..start + 64]) };
        let copy = Code { address: memory.address, bytes: &memory.bytes()[..before + 64] };
        let entry = memory.address + before as u64;
        let site = entry + copy.bytes[before..].windows(2).position(|bytes| bytes == [0x0f, 0x05]).unwrap() as u64;
        let patch = patch(&copy, site, &memory);
        same_when_patched(&memory, &patch, entry, &[[0o22, 0, 0]], false);
        done += 1;
    }
    assert!(done >= 6);
}

/// A thread whose next instruction was overwritten goes on in the stub.
#[test]
fn a_thread_inside_the_bytes_goes_on_in_the_stub() {
    let memory = Memory::new(2 * ROOM);
    // … syscall; mov %rdi,%rdx; neg %rdx; ret: enter at the second and the third instruction.
    let built = Built::new(memory.address, &hex("e8 00 00 00 00 48 83 c4 08 f9"), &hex("57 5a 50 48 f7 da 58 c3"));
    // SAFETY: fresh memory.
    unsafe { machine::write(memory.address, &built.bytes) };
    let patch = patch(&built.code(), built.site, &memory);
    let stub = outlast_rewrite::Stub::read(patch.stub_address, &patch.stub).unwrap();
    let _guard = ONE_AT_A_TIME.lock().unwrap();
    let state = State::new([7, 8, 9]);
    // SAFETY: the code keeps rsp from here on, and makes no call.
    let unpatched = unsafe { machine::run(built.site + 2, state) };
    assert_eq!(unpatched.rdx, 7u64.wrapping_neg());
    // SAFETY: no other thread knows this memory.
    unsafe { machine::apply(&patch) };
    let inside = stub.stub_address(built.site + 2).unwrap();
    // SAFETY: as above.
    assert_eq!(unsafe { machine::run(inside, state) }, unpatched);
    assert_eq!(stub.stub_address(built.site + 3), Some(inside + 1));
    assert_eq!(stub.stub_address(built.site + 8), None);
}
