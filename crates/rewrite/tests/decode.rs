//! The decoder against iced-x86: on every instruction of real code, and on random bytes.

#[path = "support/reference.rs"]
mod reference;
mod support;

use iced_x86::{Code, Decoder, DecoderOptions};
use outlast_rewrite::decode::{decode, Undecodable, MAX_LEN};
use proptest::prelude::*;
use reference::compare;

/// Every instruction that user code contains is decoded, with the right length, in libc, ld.so, libpython, busybox, Go …
#[test]
fn agrees_on_every_instruction_of_real_code() {
    for binary in support::binaries() {
        let (mut count, mut movable, mut unknown) = (0u64, 0u64, 0u64);
        for text in &binary.texts {
            let bytes = &text.bytes[..text.bytes.len().min(12 << 20)];
            let mut decoder = Decoder::with_ip(64, bytes, text.address, DecoderOptions::NONE);
            let mut at = 0;
            while at + MAX_LEN < bytes.len() {
                let theirs = decoder.decode();
                let window = &bytes[at..at + MAX_LEN];
                compare(window).unwrap();
                if theirs.code() != Code::INVALID {
                    match decode(window) {
                        Ok(instruction) => movable += instruction.movable as u64,
                        Err(Undecodable::Unknown) => unknown += 1,
                        // What only the kernel may execute, met where data is read as code.
                        Err(_) => assert!(
                            theirs.is_privileged() || theirs.code() == Code::Xbegin_rel16,
                            "{window:02x?} {theirs:?} {:?} refused at {at:x} of {}",
                            theirs.code(),
                            binary.path.display()
                        ),
                    }
                }
                count += 1;
                at = decoder.position();
            }
        }
        println!("{}: {count} instructions, {movable} movable, {unknown} unknown", binary.path.display());
    }
}

/// Every opcode of the two legacy maps with every ModRM byte and the usual prefixes.
#[test]
fn agrees_on_every_opcode() {
    let prefixes: [&[u8]; 14] = [
        &[],
        &[0x66],
        &[0xf2],
        &[0xf3],
        &[0x67],
        &[0xf0],
        &[0x64],
        &[0x2e],
        &[0x48],
        &[0x41],
        &[0x66, 0x48],
        &[0x48, 0x66],
        &[0xf3, 0x66, 0x4f],
        &[0x66, 0x66, 0x2e],
    ];
    let mut accepted = 0;
    for prefix in prefixes {
        for map in [&[][..], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]] {
            for opcode in 0..=255u8 {
                for modrm in 0..=255u8 {
                    let mut bytes = [prefix, map, &[opcode, modrm]].concat();
                    bytes.extend([0x24, 0x17, 0x80, 0x91, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa]);
                    compare(&bytes).unwrap();
                    accepted += decode(&bytes).is_ok() as u32;
                }
            }
        }
    }
    println!("{accepted} accepted");
    assert!(accepted > 1_000_000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_on_random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        if let Err(text) = compare(&bytes) { prop_assert!(false, "{}", text); }
    }

    /// Prefixes and two-byte opcodes, more often than chance has them.
    #[test]
    fn agrees_on_prefixed_bytes(
        prefixes in prop::collection::vec(prop::sample::select(
            &[0x66u8, 0x67, 0xf0, 0xf2, 0xf3, 0x2e, 0x3e, 0x64, 0x65, 0x40, 0x41, 0x48, 0x4c, 0x0f, 0x0f, 0xc5, 0xc4, 0x62][..]), 0..5),
        bytes in prop::collection::vec(any::<u8>(), 15..16),
    ) {
        let all: Vec<u8> = prefixes.into_iter().chain(bytes).collect();
        if let Err(text) = compare(&all) { prop_assert!(false, "{}", text); }
    }
}
