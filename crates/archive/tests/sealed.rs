//! Encrypted generations are read with their key, where they were written, as they were written, or not at all.

mod support;

use outlast_archive::{Archive, ArchiveError, Generation, Target};
use outlast_store::{FileRegion, Params, Store, PAGE, SCRATCH_LEN};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use support::{commit, holds, seal, Home, State, POLICY};

/// A key of this byte alone.
const KEY: u8 = 7;

/// Two generations of which the second names blocks of the first, and what they hold.
fn two(home: &Home) -> [State; 2] {
    let (mut store, mut state, mut archive) = (home.store(), State::new(), home.archive(POLICY));
    commit(&mut store, &mut state, (0..12).map(|page| (page, page + 1)));
    home.keep(&mut archive).unwrap();
    let first = state.clone();
    commit(&mut store, &mut state, (3..5).map(|page| (page, page + 5)));
    home.keep(&mut archive).unwrap();
    [first, state]
}

/// A page that cannot be compressed.
fn noise(mut seed: u64) -> [u8; PAGE as usize] {
    std::array::from_fn(|_| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 56) as u8
    })
}

fn read(home: &Home, number: u64) -> Result<(), ArchiveError> {
    Generation::read(&home.place(), number)?.verify()
}

fn file(home: &Home, name: &str) -> PathBuf {
    home.path().join(format!("store.gen.{name}"))
}

#[test]
fn what_was_kept_encrypted_comes_back_with_the_key() {
    let home = Home::sealed(KEY);
    let states = two(&home);
    // Another process, which knows nothing but the key.
    let mut archive = home.archive(POLICY);
    assert!(archive.kept().iter().all(|kept| kept.encrypted) && archive.damaged().is_empty());
    assert!(holds(&archive, 1, &states[0]) && holds(&archive, 2, &states[1]));
    let (mut store, mut state) = (home.store(), State::new());
    commit(&mut store, &mut state, (0..90).map(|page| (page * 2, page)));
    let third = home.keep(&mut archive).unwrap();
    assert!(holds(&archive, third.number, &state) && holds(&archive, 2, &states[1]));
    let params = Params { base_seq: 41, ..*store.params() };
    let target = Target { file: home.file("other"), params, journal: Vec::new() };
    archive.generation(2).unwrap().write_to(target).unwrap();
    let region = FileRegion::open(home.file("other")).unwrap();
    let (other, recovered) = Store::open(region, Vec::leak(vec![0; SCRATCH_LEN as usize])).unwrap();
    assert_eq!((recovered.seq, other.stats().live_pages), (42, states[1].len() as u64));
}

/// What a program holds is nowhere in the files, be it in pages, addresses or objects.
#[test]
fn nothing_of_it_is_legible() {
    let word = b"swordfish swordfish swordfish";
    for (home, is_legible) in [(Home::new(), true), (Home::sealed(KEY), false)] {
        let mut store = home.store();
        store.begin();
        // Of what cannot be compressed every byte stands in the file as it is.
        let mut page = noise(1);
        page[99..][..word.len()].copy_from_slice(word);
        store.page(0x7000 * PAGE, &page);
        store.put(7, 1, word);
        store.commit().unwrap();
        let mut archive = home.archive(POLICY);
        home.keep(&mut archive).unwrap();
        let half = &word[..14];
        let found = home.files().values().any(|bytes| bytes.windows(half.len()).any(|bytes| bytes == half));
        assert_eq!(found, is_legible);
    }
}

#[test]
fn without_the_right_key_nothing_is_read_and_nothing_is_lost() {
    let home = Home::sealed(KEY);
    let states = two(&home);
    fs::write(file(&home, "3.new"), b"cut short").unwrap();
    fs::write(file(&home, "3.pages"), b"and this, too").unwrap();
    let all = home.files();
    let other_key = home.bare().sealed(seal(KEY + 1, 1));
    let other_program = home.bare().sealed(seal(KEY, 2));
    let both = home.bare().sealed(seal(KEY + 1, 2));
    for (place, wanted) in [
        (home.bare(), ArchiveError::KeyNeeded(1)),
        (other_key, ArchiveError::WrongKey(1)),
        (other_program, ArchiveError::Foreign(1)),
        (both, ArchiveError::Foreign(1)),
    ] {
        // Listing needs no key.
        assert_eq!(Archive::list(&place).unwrap().len(), 2);
        assert_eq!(Generation::read(&place, 1).err(), Some(wanted));
        assert_eq!(Archive::open(place, POLICY).err(), Some(wanted));
        assert_eq!(home.files(), all, "{wanted}");
    }
    let archive = home.archive(POLICY);
    assert!(holds(&archive, 1, &states[0]) && holds(&archive, 2, &states[1]));
}

#[test]
fn what_is_not_encrypted_is_none_of_an_encrypted_archive() {
    let (home, plain) = (Home::sealed(KEY), Home::new());
    two(&home);
    two(&plain);
    let of_plain: BTreeMap<_, _> =
        plain.files().into_iter().map(|(path, bytes)| (home.path().join(path.file_name().unwrap()), bytes)).collect();
    home.lay_out(&of_plain);
    assert_eq!(read(&home, 2), Err(ArchiveError::Plain(2)));
    assert_eq!(Archive::open(home.place(), POLICY).err(), Some(ArchiveError::Plain(1)));
    assert_eq!(home.files(), of_plain);
}

/// All over every file; what checksums would notice is altered together with them.
#[test]
fn no_altered_byte_is_ever_part_of_a_state() {
    let home = Home::sealed(KEY);
    let states = two(&home);
    let whole = home.files();
    let (mut noticed, mut tried) = (0, 0);
    for (path, bytes) in &whole {
        for at in (0..bytes.len()).step_by(bytes.len() / 2000 + 1) {
            let mut altered = bytes.clone();
            altered[at] ^= 1 << (at % 8);
            mend_checksums(path, &mut altered);
            if altered == *bytes {
                // It was part of a checksum.
                continue;
            }
            fs::write(path, altered).unwrap();
            tried += 1;
            match read(&home, 2) {
                // What generation 2 does not name.
                Ok(()) => assert!(is_only_of_the_first(&home, path), "{path:?} at {at}"),
                Err(_) => noticed += 1,
            }
        }
        fs::write(path, bytes).unwrap();
        for cut in (0..bytes.len()).step_by(bytes.len() / 300 + 1) {
            fs::write(path, &bytes[..cut]).unwrap();
            assert!(read(&home, 2).is_err() || is_only_of_the_first(&home, path), "{path:?} of {cut}");
        }
        fs::write(path, bytes).unwrap();
    }
    assert!(noticed > tried / 2, "{noticed} of {tried}");
    assert!(holds(&home.archive(POLICY), 2, &states[1]));
}

/// The index of the first, and those of its blocks that the second has its own for.
fn is_only_of_the_first(home: &Home, path: &PathBuf) -> bool {
    *path == file(home, "1") || *path == file(home, "1.pages")
}

/// Makes the checksums of a file right again, so that nothing but the seal notices.
fn mend_checksums(path: &std::path::Path, bytes: &mut [u8]) {
    let crc = |bytes: &[u8]| outlast_store::crc32c(outlast_store::Cpu::detect(), 0, bytes).to_le_bytes();
    if path.extension().is_some_and(|extension| extension == "pages") {
        let mut at = 0;
        while at + 16 <= bytes.len() {
            let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
            let Some(block) = bytes.get_mut(at..at + 16 + len) else { return };
            block[12..16].fill(0);
            let both = [&block[16..], &block[..16]].concat();
            block[12..16].copy_from_slice(&crc(&both));
            at += 16 + len;
        }
    } else if bytes.len() > 128 {
        let body = crc(&bytes[128..]);
        bytes[72..76].copy_from_slice(&body);
        let (head, seal) = (crc(&bytes[..76]), crc(&bytes[80..124]));
        bytes[76..80].copy_from_slice(&head);
        bytes[124..128].copy_from_slice(&seal);
    }
}

/// Files of the same names, each whole by itself: of other programs, of other generations, of another time.
#[test]
fn no_file_takes_the_place_of_another() {
    let (home, mut other) = (Home::sealed(KEY), Home::new());
    other.seal = Some(seal(KEY, 2));
    let states = two(&home);
    two(&other);
    let whole = home.files();
    let swap = |from: &PathBuf, to: &str| {
        fs::copy(from, file(&home, to)).unwrap();
        let outcome = read(&home, 2);
        home.lay_out(&whole);
        outcome
    };
    // Those of another program, with the same key.
    assert_eq!(swap(&file(&other, "2"), "2"), Err(ArchiveError::Foreign(2)));
    for pages in ["1.pages", "2.pages"] {
        assert_eq!(swap(&file(&other, pages), pages), Err(ArchiveError::Damaged(2)));
    }
    // Those of other generations.
    assert_eq!(swap(&file(&home, "1"), "2"), Err(ArchiveError::Damaged(2)));
    assert_eq!(swap(&file(&home, "1.pages"), "2.pages"), Err(ArchiveError::Damaged(2)));
    // Those of the same archive at another time: it was begun anew, with the same key and id.
    let again = Home::sealed(KEY);
    two(&again);
    for pages in ["1.pages", "2.pages"] {
        assert_eq!(swap(&file(&again, pages), pages), Err(ArchiveError::Damaged(2)), "{pages}");
    }
    assert_eq!(swap(&file(&again, "2"), "2"), Err(ArchiveError::Damaged(2)));
    assert!(holds(&home.archive(POLICY), 2, &states[1]));
}

/// Blocks of one length, each sealed as it is.
#[test]
fn no_block_takes_the_place_of_another() {
    let home = Home::sealed(KEY);
    let mut store = home.store();
    store.begin();
    (0..128).for_each(|page| store.page(page * PAGE, &noise(page + 1)));
    store.commit().unwrap();
    home.keep(&mut home.archive(POLICY)).unwrap();
    let path = file(&home, "1.pages");
    let bytes = fs::read(&path).unwrap();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    assert_eq!((first.len(), &first[..12]), (second.len(), &second[..12]), "two blocks that look alike");
    assert_eq!(read(&home, 1), Ok(()));
    fs::write(&path, [second, first].concat()).unwrap();
    assert_eq!(read(&home, 1), Err(ArchiveError::Damaged(1)));
    fs::write(&path, [first, first].concat()).unwrap();
    assert_eq!(read(&home, 1), Err(ArchiveError::Damaged(1)));
}

/// One that is damaged is gone, and said to be; the others are there.
#[test]
fn what_is_damaged_is_told_apart_from_what_lacks_its_key() {
    let home = Home::sealed(KEY);
    let states = two(&home);
    let mut bytes = fs::read(file(&home, "2")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(file(&home, "2"), bytes).unwrap();
    let archive = home.archive(POLICY);
    assert_eq!(archive.damaged(), [2]);
    assert!(archive.kept().len() == 1 && holds(&archive, 1, &states[0]));
}
