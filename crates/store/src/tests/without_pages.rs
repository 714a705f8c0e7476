//! A copy of a store to which most frames were not copied.

use crate::{Params, Store, VecRegion, PAGE, SCRATCH_LEN};
use std::vec;

#[test]
fn a_copy_has_the_pages_that_it_keeps_and_all_objects_and_goes_on() {
    let mut scratch = vec![0; SCRATCH_LEN as usize];
    let (kept, other, third) = (8 << 20, 16 << 20, 24 << 20);
    let mut store = Store::format(VecRegion::new(256 << 20), &Params::default(), &mut scratch).unwrap();
    for round in 1..4 {
        store.begin();
        for addr in [kept, other, third] {
            store.page(addr, &[round; PAGE as usize]);
        }
        store.put(1, 2, &[round; 100]);
        store.commit().unwrap();
        if round == 2 {
            store.fold().unwrap();
        }
    }
    let seq = store.seq();
    let mut copy = store.into_region();
    let mut page = [0; PAGE as usize];

    let (mut store, recovered) = Store::open_with(copy, (kept, kept + PAGE), &mut scratch).unwrap();
    assert_eq!((recovered.seq, store.seq()), (seq, seq));
    assert!(store.contains(kept) && !store.contains(other) && !store.contains(third));
    assert!(store.read_page(kept, &mut page).unwrap() && page == [3; PAGE as usize]);
    assert!(!store.read_page(other, &mut page).unwrap() && page == [0; PAGE as usize]);
    let mut object = [0; 100];
    assert_eq!(store.object(1, 2, &mut object), Some(100));
    assert_eq!(object, [3; 100]);
    // What it lacks is not there for whoever opens it next, either; what is saved from now on is.
    copy = store.into_region();
    store = Store::open(copy, &mut scratch).unwrap().0;
    assert!(store.contains(kept) && !store.contains(other));
    store.begin();
    store.page(other, &[9; PAGE as usize]);
    store.commit().unwrap();
    copy = store.into_region();
    let store = Store::open(copy, &mut scratch).unwrap().0;
    assert!(store.read_page(other, &mut page).unwrap() && page == [9; PAGE as usize]);
    assert!(store.contains(kept) && !store.contains(third));
}
