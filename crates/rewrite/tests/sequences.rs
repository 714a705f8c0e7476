//! What becomes of the sequences of instructions that occur around system calls.

#[path = "support/built.rs"]
mod built;

use built::{hex, linked, plan_in, planned, Built, CODE, TIGHT};
use outlast_rewrite::{Obstacle, Patch, Refusal};

fn refused(before: &str, after: &str) -> (Obstacle, Obstacle) {
    match planned(before, after).map(|(plan, _)| plan) {
        Err(Refusal::NoRoom { before, after }) => (before, after),
        other => panic!("{other:x?}"),
    }
}

/// The instructions of the stub, one a line, as iced-x86 writes their codes and targets.
fn listing(patch: &Patch) -> Vec<String> {
    use iced_x86::{Decoder, DecoderOptions, FlowControl};
    let start = (patch.entry() - patch.stub_address) as usize;
    Decoder::with_ip(64, &patch.stub[start..patch.stub_len()], patch.entry(), DecoderOptions::NONE)
        .iter()
        .map(|instruction| {
            let near =
                matches!(instruction.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch);
            let mut line = format!("{:?}", instruction.code());
            if near {
                line += &format!(" {:x}", instruction.near_branch_target());
            } else if instruction.is_ip_rel_memory_operand() {
                line += &format!(" [{:x}]", instruction.ip_rel_memory_address());
            }
            line
        })
        .collect()
}

/// `lea tail(%rip),%rcx; jmp *gate(%rip); syscall`.
fn to_gate(patch: &Patch) -> Vec<String> {
    let (tail, gate) = (patch.tail(), patch.gate_slot());
    vec![format!("Lea_r64_m [{tail:x}]"), format!("Jmp_rm64 [{gate:x}]"), "Syscall".to_string()]
}

/// The jump that replaces the program's bytes.
fn jumps_to_the_stub(patch: &Patch) {
    let bytes = patch.overwrite().replacement();
    let displacement = i32::from_le_bytes(bytes[1..5].try_into().unwrap());
    assert_eq!((bytes[0], patch.at().wrapping_add_signed(5 + i64::from(displacement))), (0xe9, patch.entry()));
    assert!(bytes[5..].iter().all(|byte| *byte == 0x90));
}

/// Only the number's move goes into the stub; the call itself stays where it is.
fn takes_the_number(before: &str, after: &str, moved: &str, len: u64) {
    let (patch, built) = linked(before, after);
    jumps_to_the_stub(&patch);
    assert_eq!(patch.at(), built.site - len);
    assert_eq!(patch.overwrite().replacement().len() as u64, len);
    assert!(!patch.overwrite().holds_boundary());
    let back = format!("Jmp_rel32_64 {:x}", built.site + 2);
    assert_eq!(listing(&patch), [vec![moved.to_string()], to_gate(&patch), vec![back]].concat());
}

#[test]
fn number_in_eax() {
    // glibc, Go, musl: mov $1,%eax; syscall; cmp $-4096,%rax; ja
    takes_the_number("b8 01 00 00 00", "48 3d 00 f0 ff ff 77 07 c3", "Mov_r32_imm32", 5);
}

#[test]
fn number_in_rax() {
    takes_the_number("48 c7 c0 3c 00 00 00", "f4", "Mov_rm64_imm32", 7);
}

#[test]
fn argument_from_the_stack() {
    // glibc's syscall(): mov 8(%rsp),%r9; syscall; cmp $-4095,%rax; jae
    takes_the_number("4c 8b 4c 24 08", "48 3d 01 f0 ff ff 73 01 c3", "Mov_r64_rm64", 5);
}

#[test]
fn argument_relative_to_rip() {
    // lea 0x1000(%rip),%rsi
    let (patch, built) = linked("48 8d 35 00 10 00 00", "c3");
    assert_eq!(listing(&patch)[0], format!("Lea_r64_m [{:x}]", built.site + 0x1000));
}

/// The call and what follows it: expected instructions, `S+n` standing for an address behind the site, and bytes taken.
fn takes_what_follows(after: &str, moved: &[&str], len: usize) {
    let (patch, built) = linked(TIGHT, after);
    jumps_to_the_stub(&patch);
    assert_eq!((patch.at(), patch.overwrite().replacement().len()), (built.site, len));
    assert!(patch.overwrite().holds_boundary());
    let absolute = |line: &&str| match line.split_once("S+") {
        Some((code, distance)) => {
            let (distance, rest) = distance.split_at(distance.find(']').unwrap_or(distance.len()));
            format!("{code}{:x}{rest}", built.site + u64::from_str_radix(distance, 16).unwrap())
        }
        None => line.to_string(),
    };
    assert_eq!(listing(&patch), [to_gate(&patch), moved.iter().map(absolute).collect()].concat());
}

#[test]
fn comparison_after() {
    takes_what_follows("48 3d 00 f0 ff ff 77 07", &["Cmp_RAX_imm32", "Jmp_rel32_64 S+8"], 8);
    takes_what_follows("48 3d 01 f0 ff ff 0f 83 00 01 00 00", &["Cmp_RAX_imm32", "Jmp_rel32_64 S+8"], 8);
    takes_what_follows("3d 00 f0 ff ff 0f 87 00 01 00 00", &["Cmp_EAX_imm32", "Jmp_rel32_64 S+7"], 7);
    takes_what_follows("83 f8 da 75 02", &["Cmp_rm32_imm8", "Jmp_rel32_64 S+5"], 5);
}

#[test]
fn test_and_branch_after() {
    takes_what_follows("85 c0 7f 13", &["Test_rm32_r32", "Jg_rel32_64 S+19", "Jmp_rel32_64 S+6"], 6);
    takes_what_follows("85 c0 0f 88 f0 00 00 00", &["Test_rm32_r32", "Js_rel32_64 S+fa", "Jmp_rel32_64 S+a"], 10);
}

#[test]
fn moves_after() {
    takes_what_follows("89 c2 f7 da", &["Mov_rm32_r32", "Neg_rm32", "Jmp_rel32_64 S+6"], 6);
    takes_what_follows("48 89 c5", &["Mov_rm64_r64", "Jmp_rel32_64 S+5"], 5);
    takes_what_follows("5a 5e c3", &["Pop_r64", "Pop_r64", "Retnq"], 5);
    takes_what_follows("57 48 3d 01 f0 ff ff", &["Push_r64", "Cmp_RAX_imm32", "Jmp_rel32_64 S+9"], 9);
    takes_what_follows("48 8b 44 24 08", &["Mov_r64_rm64", "Jmp_rel32_64 S+7"], 7);
    takes_what_follows("89 44 24 20", &["Mov_rm32_r32", "Jmp_rel32_64 S+6"], 6);
    takes_what_follows("66 0f ef c0", &["Pxor_xmm_xmmm128", "Jmp_rel32_64 S+6"], 6);
}

#[test]
fn operands_relative_to_rip_after() {
    takes_what_follows("48 8b 0d 00 20 00 00", &["Mov_r64_rm64 [S+2009]", "Jmp_rel32_64 S+9"], 9);
    // cmpl $1,0x2000(%rip): an immediate behind the displacement.
    takes_what_follows("83 3d 00 20 00 00 01", &["Cmp_rm32_imm8 [S+2009]", "Jmp_rel32_64 S+9"], 9);
    takes_what_follows("ff 25 00 20 00 00", &["Jmp_rm64 [S+2008]"], 8);
}

#[test]
fn jump_after() {
    takes_what_follows("e9 00 01 00 00", &["Jmp_rel32_64 S+107"], 7);
    // A short one needs padding behind it.
    takes_what_follows("eb 10 cc", &["Jmp_rel32_64 S+14"], 5);
}

#[test]
fn return_and_padding_after() {
    takes_what_follows("c3 cc cc", &["Retnq"], 5);
    // Up to where functions begin: the site is at …107.
    takes_what_follows("c3 66 0f 1f 44 00 00 c3", &["Retnq"], 5);
}

/// Another function may begin behind a `ret`, even with a `nop`.
#[test]
fn return_without_padding_is_left_alone() {
    assert_eq!(refused(TIGHT, "c3 31 c0 c3").1, Obstacle::NoRoom);
    assert_eq!(refused(TIGHT, "c3 0f 1f 00 31 c0 c3").1, Obstacle::NoRoom);
    assert_eq!(refused(TIGHT, "eb 10 31 c0 c3").1, Obstacle::NoRoom);
}

/// When neither side alone has room, short instructions before the call and the call itself.
#[test]
fn short_instructions_before() {
    let (patch, built) = linked("e8 00 00 00 00 48 89 f8", "c3 31 c0 c3");
    assert_eq!((patch.at(), patch.overwrite().replacement().len()), (built.site - 3, 5));
    let back = format!("Jmp_rel32_64 {:x}", built.site + 2);
    assert_eq!(listing(&patch), [vec!["Mov_rm64_r64".to_string()], to_gate(&patch), vec![back]].concat());
    let (patch, built) = linked("6a 01 31 c0", "c3 31 c0 c3");
    assert_eq!((patch.at(), patch.overwrite().replacement().len()), (built.site - 4, 6));
}

#[test]
fn what_cannot_move_stays() {
    // call; endbr64; rdtsc; a lock prefix, which glibc's code used to jump over
    let call = refused("e8 00 00 00 00 ".repeat(2).as_str(), "e8 00 00 00 00");
    assert_eq!(call, (Obstacle::Unmovable, Obstacle::Unmovable));
    assert_eq!(refused("e8 00 00 00 00", "f3 0f 1e fa").1, Obstacle::Entry);
    assert_eq!(refused("f3 0f 1e fa", "e8 00 00 00 00").0, Obstacle::Entry);
    assert_eq!(refused("0f 31", "0f 31 90").1, Obstacle::Unmovable);
    assert_eq!(refused("0f 31", "f0 ff 07 90").1, Obstacle::Unmovable);
    assert_eq!(refused("75 00", "06 06 06").1, Obstacle::Undecodable);
}

#[test]
fn signal_return_is_left_to_unwinders() {
    for before in ["48 c7 c0 0f 00 00 00", "b8 0f 00 00 00"] {
        assert_eq!(planned(before, "0f 1f 80 00 00 00 00").err(), Some(Refusal::SignalReturn));
    }
}

#[test]
fn flags_from_before_the_call_are_respected() {
    // jne; or, after moves that leave flags alone, sbb; along a jump, setne
    for after in ["75 10 90 90 90", "89 c2 89 d1 19 c0", "89 c2 eb 02 cc cc 0f 95 c0"] {
        assert_eq!(planned("b8 01 00 00 00", after).err(), Some(Refusal::FlagsLive), "{after}");
    }
    assert!(planned("b8 01 00 00 00", "89 c2 85 d2 75 10").is_ok());
}

#[test]
fn branches_into_the_bytes_refuse() {
    // A loop that comes back right behind the call: jmp -4 at S+8 leads to S+2 … with a jump, too, to the number's move.
    assert_eq!(refused(TIGHT, "48 3d 00 f0 ff ff eb f8").1, Obstacle::Branch);
    // The same with long branches.
    assert_eq!(refused(TIGHT, "48 3d 00 f0 ff ff 0f 84 f4 ff ff ff").1, Obstacle::Branch);
    assert_eq!(refused(TIGHT, "48 3d 00 f0 ff ff e8 f5 ff ff ff").1, Obstacle::Branch);
    // To the first byte is allowed.
    assert!(planned(TIGHT, "48 3d 00 f0 ff ff eb f6").is_ok());
}

/// A loop around the call alone would never meet the jump before it.
#[test]
fn a_loop_around_the_call_prefers_what_follows() {
    let (plan, built) = planned("b8 01 00 00 00", "48 3d 00 f0 ff ff 75 f6 c3").unwrap();
    assert_eq!(plan.at(), built.site);
}

#[test]
fn forbidden_ranges_are_not_touched() {
    let built = Built::new(CODE, &hex("b8 01 00 00 00"), &hex("48 3d 00 f0 ff ff c3"));
    let site = built.site;
    let with =
        |start: u64, end: u64| plan_in(&built.code(), site, &move |range| range.start < end && start < range.end);
    assert_eq!(with(site + 1, site + 2).err(), Some(Refusal::Forbidden));
    assert_eq!(with(site - 1, site).unwrap().at(), site);
    assert_eq!(with(site + 4, site + 5).unwrap().at(), site - 5);
    assert_eq!(with(CODE, site).unwrap().at(), site);
    assert_eq!(with(site + 200, site + 300).unwrap().at(), site - 5);
}

#[test]
fn not_a_site() {
    let built = Built::new(CODE, &hex("b8 01 00 00 00"), &hex("c3"));
    for site in [built.site - 1, built.site + 1, 0, u64::MAX, CODE + built.bytes.len() as u64 - 1] {
        assert_eq!(plan_in(&built.code(), site, &|_| false).err(), Some(Refusal::NotSyscall));
    }
}
