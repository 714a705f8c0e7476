//! Plans every `syscall` in arbitrary bytes: whatever the code around it, what is written stays within it, can be undone, and
//! jumps to a stub that consists of instructions.
#![no_main]

use iced_x86::{Decoder, DecoderOptions};
use libfuzzer_sys::fuzz_target;
use outlast_rewrite::{plan, BranchMap, Code};

const CODE: u64 = 0x5555_0040_0000;
const STUB: u64 = CODE + 0x1_0000;
const GATE: u64 = 0x2000_0000_1000;

fn check(bytes: &[u8], map: &BranchMap, offset: usize) {
    let code = map.code();
    let site = code.address + offset as u64;
    let Ok(plan) = plan(map, site, &|_| false) else { return };
    let over = plan.overwritten();
    assert!(over.start >= code.address && over.end <= code.address + bytes.len() as u64, "{over:x?}");
    assert!(over.end >= site && over.start <= site + 2 && over.end - over.start >= 5, "{over:x?} {site:x}");
    let Ok(patch) = plan.link(STUB, GATE) else { return };
    let (overwrite, undo) = (patch.overwrite(), patch.undo());
    let at = (over.start - code.address) as usize;
    let len = (over.end - over.start) as usize;
    assert!(overwrite.still_valid(&bytes[at..at + len]));
    assert_eq!((overwrite.replacement().len(), undo.replacement()), (len, &bytes[at..at + len]));
    let jump = i32::from_le_bytes(overwrite.replacement()[1..5].try_into().unwrap());
    assert_eq!(patch.at().wrapping_add_signed(5 + i64::from(jump)), patch.entry());
    let first = (patch.entry() - patch.stub_address) as usize;
    let stub = &patch.stub[first..patch.stub_len()];
    for instruction in &mut Decoder::with_ip(64, stub, patch.entry(), DecoderOptions::NONE) {
        assert!(!instruction.is_invalid(), "{stub:02x?}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut bits = vec![0; BranchMap::words(bytes.len())];
    let Some(map) = BranchMap::new(Code { address: CODE, bytes }, &mut bits) else { return };
    let sites = bytes.windows(2).enumerate().filter(|(_, pair)| *pair == [0x0f, 0x05]);
    sites.for_each(|(offset, _)| check(bytes, &map, offset));
});
