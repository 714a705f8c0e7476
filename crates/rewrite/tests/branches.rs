//! The search for branches into overwritten bytes, against a plain one; and plans over random bytes.

use outlast_rewrite::{plan, BranchMap, Code, Stub};
use proptest::prelude::*;

/// Whether a branch may lead into a range of offsets.
fn leads_into(bytes: &[u8], first: usize, last: usize) -> bool {
    // What was in the memory before must not matter.
    let mut bits = vec![u64::MAX; BranchMap::words(bytes.len())];
    let code = Code { address: 0x1_0000, bytes };
    BranchMap::new(code, &mut bits).unwrap().leads_into(first, last)
}

/// The same for long branches, byte by byte.
fn plain(code: &[u8], first: usize, last: usize) -> bool {
    (0..code.len().saturating_sub(4)).any(|at| {
        let opcode =
            code[at] == 0xe8 || code[at] == 0xe9 || at > 0 && code[at - 1] == 0x0f && (0x80..=0x8f).contains(&code[at]);
        let displacement = i32::from_le_bytes(code[at + 1..at + 5].try_into().unwrap());
        let target = (at as i64 + 5) + i64::from(displacement);
        opcode && (first as i64..=last as i64).contains(&target)
    })
}

/// Code without the opcodes of short branches, in which long branches are frequent and near.
fn long_branches() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => Just(0xe8u8), 4 => Just(0xe9), 4 => Just(0x0f), 3 => 0x80u8..0x90, 6 => Just(0), 3 => Just(0xff), 4 => 0u8..0x70,
    ];
    prop::collection::vec(byte, 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn finds_the_long_branches_that_a_plain_search_finds(
        code in long_branches(),
        ranges in prop::collection::vec((0usize..300, 0usize..16), 1..8),
    ) {
        for (first, len) in ranges {
            let last = (first + len).min(code.len().saturating_sub(1));
            prop_assert_eq!(leads_into(&code, first, last), plain(&code, first, last));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the bytes are: no panic, and a plan keeps its promises.
    #[test]
    fn plans_over_random_bytes(
        mut bytes in prop::collection::vec(prop_oneof![
            any::<u8>(), Just(0x48u8), Just(0x89), Just(0xb8), Just(0), Just(0x90), Just(0x0f), Just(0x85), Just(0xc3), Just(0xcc)
        ], 2..700),
        sites in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
        high in any::<bool>(),
    ) {
        let address = if high { 0x7fff_ffff_0000 } else { 0x1_0000 };
        let mut addresses = Vec::new();
        for site in &sites {
            let at = site.index(bytes.len() - 1);
            bytes[at] = 0x0f;
            bytes[at + 1] = 0x05;
            addresses.push(address + at as u64);
        }
        let sites = addresses;
        let code = Code { address, bytes: &bytes };
        let mut bits = vec![0; BranchMap::words(bytes.len())];
        let map = BranchMap::new(code, &mut bits).unwrap();
        for site in &sites {
            let Ok(plan) = plan(&map, *site, &|_| false) else { continue };
            prop_assert_eq!(plan.site(), *site);
            let range = plan.overwritten();
            prop_assert!(range.end - range.start >= 5 && range.end - range.start <= 16);
            prop_assert!(range.start <= *site && *site <= range.end);
            prop_assert!(code.at(range.start, (range.end - range.start) as usize).is_some());
            let Ok(patch) = plan.link(plan.reach().start, 0x1234) else {
                prop_assert!(plan.reach().start >= plan.reach().end);
                continue
            };
            prop_assert!(patch.stub_len() <= patch.stub.len());
            let stub = Stub::read(patch.stub_address, &patch.stub).unwrap();
            prop_assert_eq!(stub.program_address(patch.tail() - 15), Some(*site));
            for rip in patch.stub_address..patch.stub_address + 96 {
                if let Some(address) = stub.program_address(rip) {
                    prop_assert!((range.start..=range.end.max(site + 2)).contains(&address));
                }
            }
        }
    }

    #[test]
    fn random_bytes_are_no_stub(bytes in prop::array::uniform32(any::<u8>()), len in 0u8..20, site in 0u8..20) {
        let mut stub = [0u8; 96];
        stub[..32].copy_from_slice(&bytes);
        stub[32..34].copy_from_slice(&[len, site]);
        prop_assert!(Stub::read(0x10000, &stub).is_none());
    }
}

/// Every short branch that real code could have is found: forward and backward, at the ends of its range.
#[test]
fn finds_short_branches() {
    for opcode in [0xeb, 0x70, 0x7f, 0xe0, 0xe1, 0xe2, 0xe3] {
        for displacement in [-128i64, -3, 0, 1, 127] {
            let mut code = vec![0x90u8; 800];
            let at = 400usize;
            code[at] = opcode;
            code[at + 1] = displacement as u8;
            let target = (at as i64 + 2 + displacement) as usize;
            for (first, last, found) in [
                (target, target, true),
                (target - 3, target, true),
                (target, target + 3, true),
                (target + 1, target + 4, false),
                (target - 4, target - 1, false),
            ] {
                assert_eq!(leads_into(&code, first, last), found, "{opcode:x} {displacement}");
            }
        }
    }
}

/// A short branch inside another instruction's immediate is none.
#[test]
fn immediates_are_no_branches() {
    let mut code = vec![0x90u8; 800];
    // mov $0x0075,%eax … its 75 00 read as `jne` leads right behind itself.
    code[400..405].copy_from_slice(&[0xb8, 0x75, 0x00, 0, 0]);
    assert!(!leads_into(&code, 403, 403));
    // As the instruction that it seems to be, it is one.
    code[400] = 0x90;
    assert!(leads_into(&code, 403, 403));
}

/// The first and the last bytes of a segment are searched, too.
#[test]
fn searches_to_the_very_ends() {
    for len in [5usize, 16, 20, 21, 22, 37] {
        for at in [0, 1, len - 5].into_iter().filter(|at| at + 5 <= len) {
            let mut code = vec![0u8; len];
            code[at] = 0xe9;
            code[at + 1..at + 5].copy_from_slice(&(2 - (at as i32 + 5)).to_le_bytes());
            assert!(leads_into(&code, 2, 2), "{at} of {len}");
        }
    }
}

/// Too little memory is an answer, not a panic; a map made before serves again.
#[test]
fn memory_of_a_map() {
    let code = Code { address: 0x1_0000, bytes: &[0xe8, 0, 0, 0, 0, 0x90, 0x90] };
    assert!(BranchMap::new(code, &mut []).is_none() && BranchMap::again(code, &[]).is_none());
    let mut bits = [0; 1];
    assert!(BranchMap::new(code, &mut bits).unwrap().leads_into(5, 5));
    let again = BranchMap::again(code, &bits).unwrap();
    assert!(again.leads_into(0, 6) && !again.leads_into(6, 6) && !again.leads_into(6, 500));
}
