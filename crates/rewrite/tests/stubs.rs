//! What a finished stub and patch can be asked.

#[path = "support/built.rs"]
mod built;

use built::{hex, linked, plan_in, planned, Built, CODE, GATE, STUB, TIGHT};
use outlast_rewrite::{Refusal, Stub, WriteStrategy};

#[test]
fn stubs_out_of_reach_are_refused() {
    let (plan, _) = planned("b8 01 00 00 00", "c3").unwrap();
    assert!(plan.link(CODE + 0x7000_0000, GATE).is_ok());
    assert_eq!(plan.link(CODE + 0x8000_1000, GATE).err(), Some(Refusal::OutOfReach));
    // An operand 1 GB below moves the reach.
    let (plan, built) = planned(TIGHT, "48 8b 0d 00 00 00 c0").unwrap();
    assert_eq!(plan.link(CODE + 0x7000_0000, GATE).err(), Some(Refusal::OutOfReach));
    let operand = built.site.wrapping_add_signed(9 - 0x4000_0000);
    assert!(plan.reach().end <= operand + 0x8000_0000);
}

/// Addresses in the stub and in the program, both ways.
#[test]
fn addresses_translate_both_ways() {
    let (patch, built) = linked("b8 01 00 00 00", "48 3d 00 f0 ff ff c3");
    let stub = Stub::read(STUB, &patch.stub).unwrap();
    for (inside, outside) in
        [(patch.entry(), built.site - 5), (patch.restart(), built.site), (patch.tail(), built.site + 2)]
    {
        assert_eq!(stub.program_address(inside), Some(outside));
        assert_eq!(stub.stub_address(outside), Some(inside));
    }
    assert_eq!(stub.program_address(patch.restart() + 7), Some(built.site));
    assert_eq!(stub.program_address(patch.tail() - 2), Some(built.site));
    assert_eq!(patch.stub[(patch.tail() - STUB) as usize - 2..][..2], [0x0f, 0x05]);
    assert_eq!(stub.program_address(patch.entry() + 1), None);
    assert_eq!(stub.program_address(STUB), None);
    assert_eq!(stub.stub_address(built.site + 8), None);
    assert_eq!(outlast_rewrite::stub::restart_of(patch.tail()), patch.restart());

    let (patch, built) = linked(TIGHT, "89 c2 f7 da c3");
    let stub = Stub::read(STUB, &patch.stub).unwrap();
    for (inside, outside) in [(patch.tail(), 2), (patch.tail() + 2, 4), (patch.tail() + 4, 6)] {
        assert_eq!(stub.program_address(inside), Some(built.site + outside));
        assert_eq!(stub.stub_address(built.site + outside), Some(inside));
    }
}

#[test]
fn only_stubs_are_read_as_stubs() {
    let (patch, _) = linked("b8 01 00 00 00", "c3");
    assert_eq!(Stub::read(STUB, &patch.stub).unwrap().patch().overwrite(), patch.overwrite());
    for byte in 0..patch.stub.len() {
        let mut bytes = patch.stub;
        bytes[byte] ^= 1;
        // The gate's address may be any, and of the sixteen original bytes only five are used.
        assert_eq!(Stub::read(STUB, &bytes).is_some(), byte < 8 || (21..32).contains(&byte), "{byte}");
    }
    assert!(Stub::read(STUB + 96, &patch.stub).is_none());
}

#[test]
fn strategies() {
    for shift in 0..16 {
        let number = hex("b8 01 00 00 00");
        let built = Built::new(CODE, &[vec![0x90; shift], number].concat(), &hex("48 3d 00 f0 ff ff c3"));
        let patch = plan_in(&built.code(), built.site, &|_| false).unwrap().link(STUB, GATE).unwrap();
        let (code, overwrite) = (built.code(), patch.overwrite());
        let first = patch.at() % 16;
        match overwrite.strategy(&code, true) {
            WriteStrategy::Swap8 { at, old, new } => {
                assert!(first % 8 <= 3);
                let offset = (at - CODE) as usize;
                assert_eq!(old.to_le_bytes(), code.bytes[offset..offset + 8]);
                let mut bytes = built.bytes.clone();
                bytes[(patch.at() - CODE) as usize..][..5].copy_from_slice(overwrite.replacement());
                assert_eq!(new.to_le_bytes(), bytes[offset..offset + 8]);
            }
            WriteStrategy::Swap16 { at, .. } => assert!((4..=7).contains(&first) && at == patch.at() - first),
            other => assert!(first > 11 && other == WriteStrategy::Breakpoint),
        }
        assert_eq!(overwrite.strategy(&code, false) == WriteStrategy::Breakpoint, first % 8 > 3);
        // The bytes are looked at before they are overwritten, and before they are put back.
        let offset = (patch.at() - CODE) as usize;
        assert!(overwrite.still_valid(&built.bytes[offset..]) && !patch.undo().still_valid(&built.bytes[offset..]));
        assert!(!overwrite.still_valid(&built.bytes[offset..offset + 4]));
    }
    let (patch, built) = linked(TIGHT, "48 89 c5");
    assert_eq!(patch.overwrite().strategy(&built.code(), true), WriteStrategy::NeedsParkedThreads);
}
