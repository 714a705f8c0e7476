//! Stores in files that are really mapped.

use crate::{
    Area, File, FileRegion, MappedRegion, OpenError, Page, Params, Region, Store, StoreError, CHUNK, PAGE, SCRATCH_LEN,
};
use rustix::fs::{fstat, memfd_create, MemfdFlags};
use rustix::io::dup;
use std::os::fd::OwnedFd;
use std::vec::Vec;

const ADDRESS: u64 = 0x7fff_f7c0_0000;

fn memory_file() -> OwnedFd {
    memfd_create("store", MemfdFlags::CLOEXEC).unwrap()
}

fn scratch() -> Vec<u8> {
    std::vec![0; SCRATCH_LEN as usize]
}

#[test]
fn a_store_of_256_gib_takes_only_what_it_holds() {
    let (file, mut memory) = (memory_file(), scratch());
    let allocated = || fstat(&file).unwrap().st_blocks as u64 * 512;
    let region = FileRegion::create(dup(&file).unwrap(), 256 << 30).unwrap();
    let mut store = Store::format(region, &Params::default(), &mut memory).unwrap();
    assert!(allocated() < 64 << 10, "{} bytes", allocated());
    store.begin();
    (0..1000).for_each(|n| store.page(ADDRESS + n * PAGE, &[n as u8; 4096]));
    store.put(1, 2, b"object");
    assert_eq!(store.commit(), Ok(1));
    let held = allocated();
    assert!((1000 * PAGE..1100 * PAGE).contains(&held), "{held} bytes");
    drop(store);

    let region = FileRegion::open(dup(&file).unwrap()).unwrap();
    let (mut store, recovered) = Store::open(region, &mut memory).unwrap();
    assert_eq!((recovered.seq, recovered.replayed), (1, 1));
    let mut page: Page = [0; 4096];
    for n in 0..1000 {
        assert_eq!(store.read_page(ADDRESS + n * PAGE, &mut page), Ok(true));
        assert_eq!(page, [n as u8; 4096]);
    }
    let mut pieces = 0;
    store.runs(ADDRESS, ADDRESS + 1000 * PAGE, &mut |_, _, _| pieces += 1);
    assert_eq!(pieces, 1, "address and frames are contiguous");
    store.begin();
    store.drop_range(ADDRESS, ADDRESS + 1000 * PAGE);
    store.commit().unwrap();
    store.fold().unwrap();
    assert!(allocated() < held - 900 * PAGE, "{} of {held} bytes", allocated());
}

#[test]
fn a_commit_tells_how_much_it_wrote() {
    let mut memory = scratch();
    let region = FileRegion::create(memory_file(), 256 << 30).unwrap();
    let mut store = Store::format(region, &Params::default(), &mut memory).unwrap();
    let mut written = |pages| {
        store.begin();
        (0..pages).for_each(|n| store.page(ADDRESS + n * PAGE, &[1; 4096]));
        store.commit().unwrap();
        store.last_commit_len()
    };
    // To their frames, into the ring, and nothing at all.
    for pages in [100, 10, 0] {
        let bytes = written(pages);
        assert!((pages * PAGE..(pages + 1) * PAGE).contains(&bytes), "{bytes} bytes for {pages} pages");
    }
}

#[test]
fn a_commit_far_beyond_the_nominal_ring_is_given_back() {
    let (file, mut memory) = (memory_file(), scratch());
    let allocated = || fstat(&file).unwrap().st_blocks as u64 * 512;
    let region = FileRegion::create(dup(&file).unwrap(), 256 << 30).unwrap();
    let mut store = Store::format(region, &Params::default(), &mut memory).unwrap();
    for fill in 1..3 {
        store.begin();
        (0..4 * CHUNK / PAGE).for_each(|n| store.page(ADDRESS + n * PAGE, &[fill; 4096]));
        store.commit().unwrap();
    }
    assert!(store.wants_fold() && store.stats().ring_used > 8 << 20);
    assert!(allocated() > 16 << 20);
    store.fold().unwrap();
    assert!(!store.wants_fold());
    assert!(allocated() < 14 << 20, "{} bytes", allocated());
    assert_eq!((store.stats().chunks, store.stats().live_pages), (4, 2048));
}

#[test]
fn the_memory_of_a_ring_that_is_to_be_kept_is_given_back_when_it_need_not_be() {
    let (file, mut memory) = (memory_file(), scratch());
    let allocated = || fstat(&file).unwrap().st_blocks as u64 * 512;
    let region = FileRegion::create(dup(&file).unwrap(), 256 << 30).unwrap();
    let mut store = Store::format(region, &Params::default(), &mut memory).unwrap();
    let mut after_commit_of = |pages: u64, keeps: bool| {
        store.begin();
        (0..pages).for_each(|n| store.page(ADDRESS + n * PAGE, &[1; 4096]));
        store.commit().unwrap();
        store.keep_ring(keeps);
        store.fold().unwrap();
        allocated() >> 20
    };
    let all = 4 * CHUNK / PAGE;
    // To their frames first, then into the ring, too.
    after_commit_of(all, true);
    assert!(after_commit_of(all, true) >= 16);
    assert!(after_commit_of(1, true) >= 16);
    assert!(after_commit_of(1, false) < 14);
}

#[test]
fn two_mappings_of_one_file_see_the_same_store() {
    let (file, mut first, mut second) = (memory_file(), scratch(), scratch());
    let writer = FileRegion::create(dup(&file).unwrap(), 1 << 30).unwrap();
    let mut store = Store::format(writer, &Params { base_seq: 40, ..Params::default() }, &mut first).unwrap();
    store.begin();
    store.put(7, 8, b"seen");
    assert_eq!(store.commit(), Ok(41));
    let reader = FileRegion::open(dup(&file).unwrap()).unwrap();
    let (seen, recovered) = Store::peek(reader, &mut second).unwrap();
    assert_eq!((recovered.seq, seen.object(7, 8, &mut [])), (41, Some(4)));
    store.begin();
    assert_eq!(store.commit(), Ok(42), "looking disturbs nobody");
}

#[test]
fn a_mapping_keeps_within_its_bounds_and_passes_errors_on() {
    let mut bytes = std::vec![0u64; 2 * PAGE as usize / 8];
    // SAFETY: the vector is used through the region only. It need not start at a page, since nothing is discarded in it.
    let file = File {
        discard: |_, _| {},
        reserve: |_, _| true,
        sync: |_, _| -28,
        expect: |_, _| {},
        write: |_, bytes| bytes.len() / 2,
    };
    // SAFETY: as above.
    let mut region = unsafe { MappedRegion::new(bytes.as_mut_ptr().cast(), 2 * PAGE, file) };
    region.write_pages(0, &[7; 4096]);
    let mut halves = [1; 2];
    region.read(2047, &mut halves);
    assert_eq!(halves, [0, 7], "what the file did not take goes through the mapping");
    region.write(PAGE, b"text");
    let mut read = [0; 4];
    region.copy(PAGE, 2 * PAGE - 4, 4);
    region.read(2 * PAGE - 4, &mut read);
    assert_eq!(&read, b"text");
    region.publish(8, 7);
    assert_eq!(region.load(8), 7);
    assert_eq!(region.sync(0, PAGE), Err(crate::SyncError(28)));
    let mut memory = scratch();
    assert!(matches!(Store::open(region, &mut memory), Err(OpenError::Foreign)));
}

#[test]
fn an_empty_file_is_no_store() {
    assert_eq!(FileRegion::open(memory_file()).err().unwrap().kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn a_commit_that_a_fold_would_have_no_room_for_is_refused() {
    let mut bytes = std::vec![0u64; (64 << 20) / 8];
    let none = File { discard: |_, _| {}, reserve: |_, _| false, sync: |_, _| 0, expect: |_, _| {}, write: |_, _| 0 };
    // SAFETY: the vector is used through the region only.
    let region = unsafe { MappedRegion::new(bytes.as_mut_ptr().cast(), 64 << 20, none) };
    let mut memory = scratch();
    let mut store = Store::format(region, &Params::default(), &mut memory).unwrap();
    store.begin();
    store.put(1, 2, b"object");
    assert_eq!(store.commit(), Err(StoreError::NoRoom(Area::Base)));
    assert_eq!(store.seq(), 0);
}
