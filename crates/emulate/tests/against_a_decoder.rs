//! Random bytes: what is decoded at all is decoded as another decoder does.

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register};
use outlast_emulate::decode;
use outlast_image::context::Registers;

const TRIES: usize = 3_000_000;
const RIP: u64 = 0x40_0000;
const FS: u64 = 0x7000_1000_0000;

fn registers(random: &mut fastrand::Rng) -> Registers {
    let mut r = || random.u64(..);
    let (r8, r9, r10, r11, r12, r13, r14, r15) = (r(), r(), r(), r(), r(), r(), r(), r());
    let (rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp) = (r(), r(), r(), r(), r(), r(), r(), r());
    Registers { r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip: RIP, eflags: 2 }
}

fn value(regs: &Registers, register: Register) -> Option<u64> {
    Some(match register {
        Register::RAX => regs.rax,
        Register::RCX => regs.rcx,
        Register::RDX => regs.rdx,
        Register::RBX => regs.rbx,
        Register::RSP => regs.rsp,
        Register::RBP => regs.rbp,
        Register::RSI => regs.rsi,
        Register::RDI => regs.rdi,
        Register::R8 => regs.r8,
        Register::R9 => regs.r9,
        Register::R10 => regs.r10,
        Register::R11 => regs.r11,
        Register::R12 => regs.r12,
        Register::R13 => regs.r13,
        Register::R14 => regs.r14,
        Register::R15 => regs.r15,
        Register::FS => FS,
        Register::None | Register::DS | Register::ES | Register::SS | Register::CS => 0,
        _ => return None,
    })
}

/// Where the instruction writes, and how many bytes.
fn written(instruction: &Instruction, regs: &Registers) -> Option<(u64, usize)> {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    let is_written = |access| {
        matches!(access, OpAccess::Write | OpAccess::ReadWrite | OpAccess::ReadCondWrite | OpAccess::CondWrite)
    };
    let memory = info.used_memory().iter().find(|memory| is_written(memory.access()))?;
    let address = memory.virtual_address(0, |register, _, _| value(regs, register))?;
    Some((address, memory.memory_size().size()))
}

#[test]
fn random_bytes_are_decoded_alike() {
    let mut random = fastrand::Rng::with_seed(1);
    // Most bytes are no instruction that writes: beginnings that are.
    const BEGINNINGS: [&[u8]; 12] = [
        &[],
        &[0xf0],
        &[0x66],
        &[0x0f],
        &[0xc5],
        &[0xc4],
        &[0x62],
        &[0xf3],
        &[0xf2],
        &[0x64],
        &[0x66, 0x0f],
        &[0xf3, 0x0f],
    ];
    let (mut decoded, mut invalid) = (0, 0);
    for number in 0..TRIES {
        let beginning = BEGINNINGS[random.usize(..BEGINNINGS.len())];
        let mut bytes = [0; 15];
        bytes.fill_with(|| random.u8(..));
        bytes[..beginning.len()].copy_from_slice(beginning);
        if random.bool() && beginning.last() == Some(&0x62) {
            // Without a mask, most of them.
            (bytes[1], bytes[2], bytes[3]) = (bytes[1] & 0xf0 | 1, bytes[2] | 0x7c, bytes[3] & 0x60 | 8);
        }
        let Some(write) = decode(&bytes) else { continue };
        decoded += 1;
        let regs = registers(&mut random);
        let instruction = Decoder::with_ip(64, &bytes, RIP, DecoderOptions::NONE).decode();
        let what = format!("{number}: {bytes:02x?} {:?} {write:?}", instruction.code());
        if instruction.is_invalid() {
            // It faults before it writes: a lock before what cannot have one, for example.
            invalid += 1;
            continue;
        }
        assert_eq!(instruction.len(), write.len as usize, "{what}");
        if let Some(strings) = write.string(&regs) {
            assert_eq!(instruction.memory_size().size(), strings.size, "{what}");
            assert_eq!(instruction.has_rep_prefix() || instruction.has_repne_prefix(), strings.count != 1, "{what}");
            continue;
        }
        let target = write.target(&regs, FS);
        match written(&instruction, &regs) {
            // It does not say which word of a string of bits.
            Some((_, len))
                if instruction.op1_kind() == OpKind::Register
                    && format!("{:?}", instruction.mnemonic()).starts_with("Bt") =>
            {
                assert_eq!(len, target.len, "{what}");
            }
            found => assert_eq!(found, Some((target.address, target.len)), "{what}"),
        }
    }
    assert!(decoded > TRIES / 20 && invalid < decoded / 5, "{decoded}, {invalid} of them invalid");
}
