//! Opens a store with arbitrary changes, reads all of it, and uses it. The library's checksums are all 0 here (`cfg(fuzzing)`),
//! so that changes get past them.
//!
//! See `make fuzz`.
//!
//! An input is a list of patches: number of a block of 64 bytes that is not all zero, before the frames (2 bytes,
//! little-endian), offset in it and length (1 byte each, 6 and 4 bits used), bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_store::{Params, Store, VecRegion, PAGE};
use std::cell::RefCell;

const LEN: u64 = 6 << 20;
const SCRATCH: usize = 256 << 10;

/// A store with two folds behind it and commits, a journal and a torn commit before it.
fn original() -> Vec<u8> {
    let mut scratch = vec![0; SCRATCH];
    let params = Params { ring_len: 16 << 10, ..Params::default() };
    let mut store = Store::format(VecRegion::new(LEN), &params, &mut scratch).expect("large enough");
    for round in 0..5u8 {
        store.begin();
        store.page(0x7000_0000_0000 + round as u64 * PAGE, &[round; 4096]);
        let (page, mut shadow) = ([round + 9; 4096], [round; 4096]);
        // SAFETY: two live arrays.
        unsafe { store.diff(0x7000_0000_0000 + round as u64 * PAGE, &page, &mut shadow) };
        store.put(1, round as u64, &[round; 100]);
        store.delete(1, round as u64 / 2);
        store.drop_range(0x7000_0000_0000, 0x7000_0000_0000 + PAGE);
        store.commit().expect("room");
        if round == 1 || round == 2 {
            store.fold().expect("no medium");
        }
    }
    store.journal_append(1, b"undo this").expect("room");
    store.begin();
    store.page(0x1000, &[7; 4096]);
    store.into_region().bytes().to_vec()
}

thread_local! {
    static ORIGINAL: (Vec<u8>, Vec<usize>) = {
        let bytes = original();
        let written = |block: &usize| bytes[block * 64..][..64].iter().any(|byte| *byte != 0);
        let blocks = (0..(2 << 20) / 64).filter(written).collect();
        (bytes, blocks)
    };
    static SPARE: RefCell<(Vec<u8>, Vec<u8>)> = RefCell::new((vec![0; LEN as usize], vec![0; SCRATCH]));
}

fn patched(bytes: &mut [u8], blocks: &[usize], mut patches: &[u8]) {
    while let [low, high, offset, len, rest @ ..] = patches {
        let block = blocks[u16::from_le_bytes([*low, *high]) as usize % blocks.len()];
        let at = block * 64 + *offset as usize % 64;
        let len = (*len as usize % 16).min(rest.len());
        bytes[at..at + len].copy_from_slice(&rest[..len]);
        patches = &rest[len..];
    }
}

fn read_all(store: &mut Store<VecRegion>) {
    let mut present = Vec::new();
    store.runs(0, u64::MAX, &mut |addr, _, len| present.extend((addr..addr + len).step_by(PAGE as usize)));
    store.chunk_runs(0, u64::MAX, &mut |_, off, len| assert!(off + len <= LEN));
    let mut page = [0; PAGE as usize];
    for addr in present {
        assert_eq!(store.read_page(addr, &mut page), Ok(true));
    }
    let mut objects = Vec::new();
    store.objects(&mut |kind, key, len| objects.push((kind, key, len)));
    for (kind, key, len) in objects {
        assert_eq!(store.object(kind, key, &mut [0; 64]), Some(len));
    }
    store.journal_for_each(&mut |_, _, _| {});
    store.journal_of_previous(&mut |_, _| {});
}

fuzz_target!(|patches: &[u8]| {
    SPARE.with_borrow_mut(|(bytes, scratch)| {
        ORIGINAL.with(|(original, blocks)| {
            bytes.copy_from_slice(original);
            patched(bytes, blocks, patches);
        });
        let region = VecRegion::from(std::mem::take(bytes));
        let region = match Store::open(region, scratch) {
            Ok((mut store, _)) => {
                read_all(&mut store);
                store.begin();
                store.drop_range(0, 1 << 57);
                store.page(0x5000, &[1; 4096]);
                match store.commit() {
                    Ok(_) => store.fold().expect("no medium"),
                    Err(_) => store.abort().expect("unchanged"),
                }
                read_all(&mut store);
                store.into_region()
            }
            Err(_) => VecRegion::new(LEN),
        };
        *bytes = region.into();
    });
});
