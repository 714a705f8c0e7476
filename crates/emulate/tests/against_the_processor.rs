//! The same instruction made here and by the processor has the same results: memory, registers, flags.

use outlast_emulate::{decode, Vectors, Write};
use outlast_image::context::Registers;
use std::arch::global_asm;
use std::sync::Mutex;

/// Flags that a program may change and that mean nothing to its next instruction.
const ARITHMETIC: u64 = 0x8d5;
const TRIES: usize = 400_000;
/// Of the memory that is written to; it begins in the middle.
const ROOM: usize = 4096;

global_asm!(
    ".globl run_one, one_state, one_code",
    // extern "C" fn run_one(): loads the registers in `one_state`, calls `one_code`, saves them there.
    "run_one:",
    "push %rbx",
    "push %rbp",
    "push %r12",
    "push %r13",
    "push %r14",
    "push %r15",
    "vmovdqu one_vector(%rip), %ymm3",
    "pushq one_state+136(%rip)",
    "popfq",
    "mov one_state+0(%rip), %r8",
    "mov one_state+8(%rip), %r9",
    "mov one_state+16(%rip), %r10",
    "mov one_state+24(%rip), %r11",
    "mov one_state+32(%rip), %r12",
    "mov one_state+40(%rip), %r13",
    "mov one_state+48(%rip), %r14",
    "mov one_state+56(%rip), %r15",
    "mov one_state+64(%rip), %rdi",
    "mov one_state+72(%rip), %rsi",
    "mov one_state+80(%rip), %rbp",
    "mov one_state+88(%rip), %rbx",
    "mov one_state+96(%rip), %rdx",
    "mov one_state+104(%rip), %rax",
    "mov one_state+112(%rip), %rcx",
    "call *one_code(%rip)",
    "mov %r8, one_state+0(%rip)",
    "mov %r9, one_state+8(%rip)",
    "mov %r10, one_state+16(%rip)",
    "mov %r11, one_state+24(%rip)",
    "mov %r12, one_state+32(%rip)",
    "mov %r13, one_state+40(%rip)",
    "mov %r14, one_state+48(%rip)",
    "mov %r15, one_state+56(%rip)",
    "mov %rdi, one_state+64(%rip)",
    "mov %rsi, one_state+72(%rip)",
    "mov %rbp, one_state+80(%rip)",
    "mov %rbx, one_state+88(%rip)",
    "mov %rdx, one_state+96(%rip)",
    "mov %rax, one_state+104(%rip)",
    "mov %rcx, one_state+112(%rip)",
    "pushfq",
    "popq one_state+136(%rip)",
    "cld",
    "pop %r15",
    "pop %r14",
    "pop %r13",
    "pop %r12",
    "pop %rbp",
    "pop %rbx",
    "ret",
    ".data",
    ".balign 64",
    "one_state: .zero 144",
    "one_code: .quad 0",
    "one_vector: .zero 64",
    ".text",
    options(att_syntax),
);

extern "C" {
    fn run_one();
    static mut one_state: Registers;
    static mut one_code: u64;
    static mut one_vector: [u8; 32];
}

struct Vector([u8; 32]);

impl Vectors for Vector {
    fn register(&self, n: u8) -> Option<[u8; 64]> {
        let mut all = [0; 64];
        all[..32].copy_from_slice(&self.0);
        (n == 3).then_some(all)
    }
}

/// Executable memory that instructions are written to.
struct Machine {
    code: *mut u8,
    memory: Vec<u8>,
}

impl Machine {
    fn new() -> Self {
        // SAFETY: makes a mapping of its own.
        let code = unsafe { libc::mmap(std::ptr::null_mut(), 4096, 7, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        assert_ne!(code, libc::MAP_FAILED);
        Self { code: code.cast(), memory: vec![0; ROOM] }
    }

    /// Executes the instruction, whose target lies in the memory.
    fn run(&mut self, instruction: &[u8], regs: &Registers, vector: [u8; 32]) -> Registers {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock().unwrap();
        // SAFETY: the instruction writes to its target only, which lies in `memory`; then it returns.
        unsafe {
            self.code.copy_from_nonoverlapping(instruction.as_ptr(), instruction.len());
            *self.code.add(instruction.len()) = 0xc3;
            one_state = Registers { rip: 0, rsp: 0, ..*regs };
            one_code = self.code as u64;
            one_vector = vector;
            run_one();
            Registers { rip: regs.rip, rsp: regs.rsp, ..one_state }
        }
    }
}

/// An instruction with a base register that is not rsp, and no other register in its address but an index that is 0.
fn random_instruction(random: &mut fastrand::Rng) -> Option<(Vec<u8>, u8)> {
    let mut bytes = Vec::new();
    let mut vex = 0;
    match random.u8(..10) {
        0..=2 => bytes.push(0x66),
        3 => bytes.push(0xf0),
        4 => bytes.push([0xf2, 0xf3][random.usize(..2)]),
        5 => vex = 0xc5,
        _ => (),
    }
    if vex == 0 && random.bool() {
        bytes.push(0x40 | random.u8(..16));
    }
    const ONE: [u8; 37] = [
        0x00, 0x01, 0x08, 0x09, 0x10, 0x11, 0x18, 0x19, 0x20, 0x21, 0x28, 0x29, 0x30, 0x31, 0x80, 0x81, 0x83, 0x86,
        0x87, 0x88, 0x89, 0xc6, 0xc7, 0xc0, 0xc1, 0xd0, 0xd1, 0xd2, 0xd3, 0xf6, 0xf7, 0xfe, 0xff, 0x88, 0x89, 0x01,
        0x29,
    ];
    const TWO: [u8; 18] =
        [0xb0, 0xb1, 0xc0, 0xc1, 0xc3, 0xc7, 0xab, 0xb3, 0xbb, 0xba, 0x11, 0x29, 0x13, 0x17, 0x7f, 0xd6, 0x7e, 0xe7];
    if vex != 0 {
        bytes.extend([0xc5, random.u8(..) | 0x78, TWO[random.usize(10..18)]]);
    } else if random.bool() {
        bytes.push(ONE[random.usize(..ONE.len())]);
    } else {
        bytes.push(0x0f);
        bytes.push(if random.bool() { 0x90 | random.u8(..16) } else { TWO[random.usize(..TWO.len())] });
    }
    // Of vector registers only the fourth has a content.
    let register = random.u8(..8);
    let base = [0, 1, 2, 3, 5, 6, 7][random.usize(..7)];
    let mode = random.u8(1..3);
    bytes.push(mode << 6 | register << 3 | base);
    let displacement: i32 = random.i32(-100..100);
    match mode {
        1 => bytes.push(displacement as u8),
        _ => bytes.extend(displacement.to_le_bytes()),
    }
    // Immediates.
    bytes.extend(random.u64(..).to_le_bytes());
    let write: Write = decode(&bytes)?;
    bytes.truncate(write.len as usize);
    Some((bytes, base))
}

fn base_of(regs: &mut Registers, n: u8) -> &mut u64 {
    match n {
        0 => &mut regs.rax,
        1 => &mut regs.rcx,
        2 => &mut regs.rdx,
        3 => &mut regs.rbx,
        5 => &mut regs.rbp,
        6 => &mut regs.rsi,
        7 => &mut regs.rdi,
        8 => &mut regs.r8,
        9 => &mut regs.r9,
        10 => &mut regs.r10,
        11 => &mut regs.r11,
        13 => &mut regs.r13,
        14 => &mut regs.r14,
        15 => &mut regs.r15,
        _ => &mut regs.r12,
    }
}

/// A lock before an instruction that cannot have one is an error of its own; rsp is needed to come back.
fn is_refused(bytes: &[u8]) -> bool {
    let instruction = iced_x86::Decoder::new(64, bytes, iced_x86::DecoderOptions::NONE).decode();
    instruction.is_invalid() || instruction.op1_register().full_register() == iced_x86::Register::RSP
}

#[test]
fn memory_registers_and_flags_are_the_processors() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut machine = Machine::new();
    let mut made = 0;
    for number in 0..TRIES {
        let Some((bytes, base)) = random_instruction(&mut random) else { continue };
        if is_refused(&bytes) {
            continue;
        }
        let write = decode(&bytes).unwrap();
        // REX.B: another base.
        let has_high_base = bytes.iter().take(2).any(|byte| byte & 0xf1 == 0x41 && byte & 1 != 0);
        let base = base | if has_high_base { 8 } else { 0 };
        if base == 12 {
            continue;
        }
        let word = |random: &mut fastrand::Rng| match random.u8(..4) {
            0 => random.u64(..4),
            1 => u64::MAX - random.u64(..4),
            _ => random.u64(..),
        };
        let mut regs = Registers { eflags: 0x202 | random.u64(..) & ARITHMETIC, ..Default::default() };
        for n in [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 12] {
            *base_of(&mut regs, n) = word(&mut random);
        }
        machine.memory.fill_with(|| random.u8(..));
        if random.bool() {
            // So that cmpxchg and cmpxchg16b find what they expect now and then.
            machine.memory.fill([0, 0xff, 1][random.usize(..3)]);
            (regs.rax, regs.rdx) = (u64::from_ne_bytes(machine.memory[..8].try_into().unwrap()), regs.rdx);
            if random.bool() {
                regs.rdx = regs.rax;
            }
        }
        // Vector registers and cmpxchg16b want an address that is a multiple of their length.
        *base_of(&mut regs, base) = 0;
        let away = write.target(&regs, 0).address;
        let middle = (machine.memory.as_ptr() as u64 + ROOM as u64 / 2) & !63;
        *base_of(&mut regs, base) = middle.wrapping_sub(away);
        let target = write.target(&regs, 0);
        let start = machine.memory.as_ptr() as u64;
        if target.address.wrapping_sub(start) > (ROOM - target.len) as u64 {
            // A bit far away, or a register that is also the base.
            continue;
        }
        let mut vector = [0; 32];
        vector.fill_with(|| random.u8(..));
        let before = machine.memory.clone();
        let at = (target.address - start) as usize;
        let mut cell = before[at..at + target.len].to_vec();
        let mut ours = regs;
        if !write.make(&mut ours, &Vector(vector), &mut cell) {
            continue;
        }
        let theirs = machine.run(&bytes, &regs, vector);
        let what = format!("{number}: {bytes:02x?} {write:?} {regs:x?}");
        let mut expected = before;
        expected[at..at + target.len].copy_from_slice(&cell);
        assert!(machine.memory == expected, "{what}: {:x?} {cell:x?}", &machine.memory[at..at + target.len]);
        let without_flags = |regs| format!("{:x?}", Registers { eflags: 0, ..regs });
        assert_eq!(without_flags(ours), without_flags(theirs), "{what}");
        assert_eq!(ours.eflags & ARITHMETIC, theirs.eflags & ARITHMETIC, "flags: {what}");
        made += 1;
    }
    assert!(made > TRIES / 10, "{made}");
}
