//! The store's ordinary use.

use crate::*;
use std::vec::Vec;

const LEN: u64 = 32 << 20;

fn scratch() -> &'static mut [u8] {
    Vec::leak(std::vec![0xa5; 1 << 20])
}

fn fresh() -> Store<'static, VecRegion> {
    Store::format(VecRegion::new(LEN), &Params { ring_len: 64 << 10, ..Params::default() }, scratch()).unwrap()
}

fn reopened(store: Store<'static, VecRegion>) -> (Store<'static, VecRegion>, Recovered) {
    Store::open(store.into_region(), scratch()).unwrap()
}

fn page(store: &Store<VecRegion>, addr: u64) -> Option<Page> {
    let mut page = [0; 4096];
    store.read_page(addr, &mut page).unwrap().then_some(page)
}

#[test]
fn pages_and_objects_come_back_folded_or_not() {
    let mut store = fresh();
    store.begin();
    store.page(0x7000_0000, &[1; 4096]);
    store.page(0x7000_1000, &[2; 4096]);
    store.put(3, 4, b"object");
    assert_eq!(store.commit(), Ok(1));
    store.begin();
    let (mut changed, mut shadow) = ([2; 4096], [2; 4096]);
    (changed[0], changed[130], changed[4095]) = (9, 9, 9);
    // SAFETY: two live arrays.
    assert_eq!(unsafe { store.diff(0x7000_1000, &changed, &mut shadow) }, 1 | 4 | 1 << 63);
    assert_eq!(shadow, changed);
    store.put2(3, 5, b"two ", b"parts");
    assert_eq!(store.commit(), Ok(2));
    for round in 0..3 {
        assert_eq!(page(&store, 0x7000_0000), Some([1; 4096]));
        assert_eq!(page(&store, 0x7000_1000), Some(changed));
        assert_eq!(page(&store, 0x7000_2000), None);
        let mut bytes = [0; 16];
        assert_eq!(store.object(3, 4, &mut bytes), Some(6));
        assert_eq!(&bytes[..6], b"object");
        assert_eq!(store.object(3, 5, &mut bytes), Some(9));
        assert_eq!(&bytes[..9], b"two parts");
        if round < 2 {
            let (opened, recovered) = reopened(store);
            assert_eq!(recovered.seq, 2);
            store = opened;
        }
    }
}

#[test]
fn a_copy_without_the_dead_part_of_the_ring_holds_all_and_goes_on() {
    let mut store = fresh();
    let mut wanted = [[0; 4096]; 24];
    for round in 0..40_usize {
        store.begin();
        for (n, content) in wanted.iter_mut().enumerate().filter(|(n, _)| (n + round) % 3 == 0) {
            *content = [(n * 40 + round) as u8; 4096];
            store.page(0x7000_0000 + n as u64 * 4096, content);
        }
        store.put(1, 0, &[round as u8]);
        store.commit().unwrap();
        let (first, end) = store.dead_ring();
        let used = store.region().bytes();
        let mut copy = VecRegion::new(LEN);
        copy.write(0, &used[..first as usize]);
        copy.write(end, &used[end as usize..]);
        let (mut copied, recovered) = Store::open(copy, scratch()).unwrap();
        assert_eq!(recovered.seq, round as u64 + 1);
        copied.begin();
        copied.put(1, 1, b"goes on");
        copied.commit().unwrap();
        let (copied, _) = reopened(copied);
        for (n, content) in wanted.iter().enumerate() {
            let is_there = (0..=round).any(|earlier| (n + earlier) % 3 == 0);
            assert_eq!(
                page(&copied, 0x7000_0000 + n as u64 * 4096),
                is_there.then_some(*content),
                "round {round}, page {n}"
            );
        }
        if store.wants_fold() {
            store.fold().unwrap();
        }
    }
}

#[test]
fn abort_leaves_the_published_state() {
    let mut store = fresh();
    store.begin();
    store.page(0x1000, &[1; 4096]);
    store.put(1, 1, b"old");
    store.commit().unwrap();
    store.begin();
    store.page(0x1000, &[2; 4096]);
    store.page(0x40_0000, &[3; 4096]);
    store.drop_range(0x1000, 0x2000);
    store.put(1, 1, b"new");
    store.delete(1, 1);
    store.abort().unwrap();
    assert_eq!(page(&store, 0x1000), Some([1; 4096]));
    assert_eq!(page(&store, 0x40_0000), None);
    let mut bytes = [0; 3];
    assert_eq!(store.object(1, 1, &mut bytes), Some(3));
    assert_eq!(&bytes, b"old");
    store.begin();
    store.page(0x40_0000, &[4; 4096]);
    assert_eq!(store.commit(), Ok(2));
    let (store, _) = reopened(store);
    assert_eq!(page(&store, 0x40_0000), Some([4; 4096]));
}

#[test]
fn pieces_are_maximal_and_clipped() {
    let mut store = fresh();
    store.begin();
    for addr in (0x3f_e000..0x40_3000).step_by(4096) {
        store.page(addr, &[1; 4096]);
    }
    store.drop_range(0x40_0000, 0x40_1000);
    store.commit().unwrap();
    store.fold().unwrap();
    let mut pieces = Vec::new();
    store.runs(0x3f_f000, 0x40_2000, &mut |addr, off, len| pieces.push((addr, off, len)));
    let base = store.areas().base.off;
    assert_eq!(pieces, [(0x3f_f000, base + 0x1f_f000, 0x1000), (0x40_1000, base + 0x20_1000, 0x1000)]);
    pieces.clear();
    store.chunk_runs(0x3f_f000, 0x1000_0000, &mut |addr, off, len| pieces.push((addr, off, len)));
    assert_eq!(pieces, [(0x3f_f000, base + 0x1f_f000, 0x20_1000)]);
}

#[test]
fn the_journal_counts_until_the_next_commit() {
    let mut store = fresh();
    let entries = |store: &mut Store<VecRegion>| {
        let mut entries = Vec::new();
        store.journal_for_each(&mut |_, kind, bytes| entries.push((kind, bytes.to_vec())));
        entries
    };
    store.journal_append(1, b"first").unwrap();
    store.journal_append(2, &[7; 9000]).unwrap();
    let (mut store, _) = reopened(store);
    assert_eq!(entries(&mut store), [(1, b"first".to_vec()), (2, [7; 9000].to_vec())]);
    store.fold().unwrap();
    store.journal_append(3, b"").unwrap();
    assert_eq!(entries(&mut store).len(), 3);
    store.journal_clear().unwrap();
    store.journal_append(4, b"after").unwrap();
    let (mut store, _) = reopened(store);
    assert_eq!(entries(&mut store), [(4, b"after".to_vec())]);
    store.begin();
    store.commit().unwrap();
    assert_eq!(entries(&mut store), []);
    let (mut store, _) = reopened(store);
    assert_eq!(entries(&mut store), []);
}

#[test]
fn what_a_commit_made_void_can_be_read_until_something_new_is_noted() {
    let mut store = fresh();
    let previous = |store: &mut Store<VecRegion>| {
        let mut entries = Vec::new();
        store.journal_of_previous(&mut |kind, bytes| entries.push((kind, bytes.to_vec())));
        entries
    };
    let noted = [(1, b"first".to_vec()), (2, b"second".to_vec())];
    for (kind, bytes) in &noted {
        store.journal_append(*kind, bytes).unwrap();
    }
    assert_eq!(previous(&mut store), []);
    store.begin();
    store.commit().unwrap();
    assert_eq!(previous(&mut store), noted);
    let (mut store, _) = reopened(store);
    assert_eq!(previous(&mut store), noted);
    store.journal_append(3, b"new").unwrap();
    assert_eq!(previous(&mut store), []);
    assert_eq!(store.journal_read(0).map(|(kind, bytes, next)| (kind, bytes.to_vec(), next)).unwrap().0, 3);
    assert!(store.journal_read(store.journal_end()).is_none());
}

#[test]
fn errors_wait_for_commit_and_leave_the_store_usable() {
    let mut store = fresh();
    assert_eq!(store.commit(), Err(StoreError::NoTransaction));
    store.begin();
    store.page(0x1001, &[0; 4096]);
    store.page(0x1000, &[0; 4096]);
    assert_eq!(store.commit(), Err(StoreError::Misaligned));
    assert_eq!(store.fold(), Err(StoreError::InTransaction));
    store.abort().unwrap();
    assert!(!store.contains(0x1000));
    store.begin();
    let mut addr = 0;
    while store.commit().is_ok() {
        store.begin();
        store.page(addr, &[1; 4096]);
        addr += CHUNK;
    }
    assert_eq!(store.commit(), Err(StoreError::NoRoom(Area::Base)));
    store.abort().unwrap();
    store.begin();
    store.drop_range(0, CHUNK);
    store.commit().unwrap();
    store.fold().unwrap();
    store.begin();
    store.page(addr, &[5; 4096]);
    store.commit().unwrap();
    store.begin();
    store.drop_range(addr, addr + CHUNK);
    store.commit().unwrap();
    store.fold().unwrap();
    store.begin();
    store.page(0, &[6; 4096]);
    store.abort().unwrap();
    store.begin();
    store.page(addr, &[5; 4096]);
    assert!(store.commit().is_ok(), "the chunk is free again after an abort");
    let (store, _) = reopened(store);
    assert_eq!(page(&store, addr), Some([5; 4096]));
    assert_eq!(page(&store, 0), None);
}
