//! What iced-x86 says of an instruction; the fuzzer's target `decode` asks the same.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl};
use outlast_rewrite::decode::{decode, MAX_LEN};
use outlast_rewrite::instruction::Flow;

fn reference(bytes: &[u8]) -> iced_x86::Instruction {
    Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode()
}

/// What `decode` says of `bytes` must be what iced-x86 says.
pub fn compare(bytes: &[u8]) -> Result<(), String> {
    let Ok(ours) = decode(bytes) else { return Ok(()) };
    let theirs = reference(bytes);
    let shown = &bytes[..bytes.len().min(MAX_LEN)];
    if theirs.code() == Code::INVALID {
        return if ours.movable { Err(format!("{shown:02x?}: moved, but invalid")) } else { Ok(()) };
    }
    if ours.len as usize != theirs.len() {
        return Err(format!("{shown:02x?} {theirs:?}: length {} is {}", ours.len, theirs.len()));
    }
    if ours.rip_operand.is_some() != theirs.is_ip_rel_memory_operand() {
        return Err(format!("{shown:02x?} {theirs:?}: rip-relative operand"));
    }
    let branch = |displacement: i32| {
        theirs.near_branch_target() == (0x1000 + ours.len as u64).wrapping_add_signed(displacement.into())
    };
    let agrees = match ours.flow {
        Flow::Next => !ours.movable || theirs.flow_control() == FlowControl::Next,
        Flow::Branch { displacement, .. } => {
            theirs.flow_control() == FlowControl::ConditionalBranch && branch(displacement)
        }
        Flow::Jump { displacement } => {
            theirs.flow_control() == FlowControl::UnconditionalBranch && branch(displacement)
        }
        Flow::Leave => matches!(theirs.flow_control(), FlowControl::Return | FlowControl::IndirectBranch),
        Flow::Call => {
            matches!(theirs.flow_control(), FlowControl::Call | FlowControl::IndirectCall | FlowControl::Interrupt)
        }
        Flow::Stop => {
            matches!(theirs.flow_control(), FlowControl::Interrupt | FlowControl::Exception)
                || theirs.code() == Code::Hlt
        }
        Flow::Short => matches!(theirs.flow_control(), FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend),
    };
    if !agrees {
        return Err(format!("{shown:02x?} {theirs:?}: {:?} is {:?}", ours.flow, theirs.flow_control()));
    }
    if ours.movable {
        let tested = iced_x86::RflagsBits::CF
            | iced_x86::RflagsBits::ZF
            | iced_x86::RflagsBits::SF
            | iced_x86::RflagsBits::OF
            | iced_x86::RflagsBits::PF;
        if !ours.reads_flags && theirs.rflags_read() & (tested | iced_x86::RflagsBits::AF) != 0 {
            return Err(format!("{shown:02x?} {theirs:?}: reads flags"));
        }
        if ours.sets_flags && theirs.rflags_modified() & tested != tested {
            return Err(format!("{shown:02x?} {theirs:?}: sets flags"));
        }
    }
    Ok(())
}
