//! A store written by somebody who means harm, or checks that happen to be right: nothing read from it is believed.

use super::history::{any_step, formatted, run, Step, SCRATCH};
use super::image::{Image, Recorder};
use super::model::{content, Model, CHUNKS, PAGES};
use super::mutant::{self, Mutant};
use super::random::{first_seed, Random};
use crate::areas::{COMMITTED, FOLDING, HEADS, JOURNAL_RUN, SUPERBLOCK};
use crate::head::MAX_SEQ;
use crate::word::seal;
use crate::{OpenError, Page, Region, Store, CHUNK, PAGE};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;

/// Everything that can be read, so that two stores can be compared.
#[derive(PartialEq, Eq)]
struct Contents {
    pages: BTreeMap<u64, Vec<u8>>,
    objects: BTreeMap<(u16, u64), Vec<u8>>,
}

fn read_all<R: Region>(store: &mut Store<R>) -> Contents {
    let (mut pages, mut objects, mut present) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    let base = store.areas().base;
    store.runs(0, u64::MAX, &mut |addr, off, len| {
        assert!(off >= base.off && off + len <= base.off + base.len && len > 0);
        present.extend((addr..addr + len).step_by(PAGE as usize));
    });
    store.chunk_runs(0, u64::MAX, &mut |_, off, len| assert!(off >= base.off && off + len <= base.off + base.len));
    for addr in present {
        let mut page = [0; PAGE as usize];
        assert_eq!(store.read_page(addr, &mut page), Ok(true));
        assert!(store.contains(addr) && store.frame_of(addr).is_some());
        pages.insert(addr, page.to_vec());
    }
    let mut found = Vec::new();
    store.objects(&mut |kind, key, len| found.push((kind, key, len)));
    for (kind, key, len) in found {
        let mut bytes = std::vec![0; len];
        assert_eq!(store.object(kind, key, &mut bytes), Some(len));
        objects.insert((kind, key), bytes);
    }
    store.journal_for_each(&mut |_, _, _| {});
    let stats = store.stats();
    assert_eq!((stats.live_pages, stats.objects), (pages.len() as u64, objects.len() as u64));
    Contents { pages, objects }
}

/// Uses a store in every way; whatever it held, what is put into it must come back.
fn use_it<R: Region>(store: &mut Store<R>) {
    let page: Page = content(1);
    let mut shadow = [0; PAGE as usize];
    store.begin();
    store.drop_range(0, 1 << 57);
    store.page(CHUNKS[0], &page);
    // SAFETY: two live arrays.
    unsafe { store.diff(CHUNKS[0] + PAGE, &page, &mut shadow) };
    store.put(9, 9, b"bytes");
    if store.commit().is_err() {
        store.abort().unwrap();
        return;
    }
    store.begin();
    store.page(CHUNKS[1], &page);
    store.abort().unwrap();
    store.journal_append(1, b"undo").unwrap();
    store.fold().unwrap();
    let contents = read_all(store);
    assert_eq!(contents.pages.len(), 2);
    assert!(contents.pages.values().all(|bytes| bytes[..] == page));
    assert_eq!(contents.objects[&(9, 9)], b"bytes");
}

/// Opens and uses whatever this is. True if it was taken for a store.
fn withstand(image: Image) -> bool {
    let mut scratch = std::vec![0x5a; SCRATCH];
    if let Ok((mut store, _)) = Store::peek(Recorder::from(image.clone()), &mut scratch) {
        read_all(&mut store);
        store.begin();
        assert!(store.commit().is_err() && store.fold().is_err());
        assert!(store.into_region().log.is_empty(), "looking changes nothing");
    }
    let (mut store, recovered) = match Store::open(Recorder::from(image), &mut scratch) {
        Ok(opened) => opened,
        Err(error) => {
            assert!(!std::format!("{error}").is_empty());
            return false;
        }
    };
    let (contents, epoch) = (read_all(&mut store), store.stats().epoch);
    let region = store.into_region();
    assert!(region.log.len() < 100_000, "work is bounded");
    if epoch + 2 > MAX_SEQ || recovered.seq + recovered.lost + 2 > MAX_SEQ {
        return true;
    }
    let (mut store, again) = Store::open(region, &mut scratch).expect("what was opened can be opened again");
    assert_eq!((again.replayed, again.lost, again.older_head), (0, 0, false));
    assert!(read_all(&mut store) == contents, "what was recovered stays");
    use_it(&mut store);
    true
}

/// Places of numbers that mean something, and some bytes at random.
fn place(image: &Image, random: &mut Random) -> u64 {
    let pages: Vec<u64> = image.pages().map(|(page, _)| page * PAGE).collect();
    match random.below(10) {
        0 => SUPERBLOCK + random.below(50) * 8,
        1 => HEADS[random.below(2) as usize] + random.below(8) * 8,
        2 => *random.pick(&[COMMITTED, FOLDING, JOURNAL_RUN]),
        3..=6 => random.pick(&pages) + random.below(64) * 8,
        _ => random.pick(&pages) + random.below(PAGE - 8),
    }
}

fn number(random: &mut Random) -> u64 {
    let near = random.below(5).wrapping_sub(2);
    let number = match random.below(12) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << random.below(64),
        3 => MAX_SEQ,
        4 => CHUNK * random.below(16),
        5 => random.pick(&CHUNKS) + random.pick(&PAGES) * PAGE,
        6 => PAGE * random.below(5000),
        7 => return seal(random.below(20)),
        8 => random.below(8) << 32 | random.below(8),
        _ => random.below(20),
    };
    number.wrapping_add(if random.one_in(2) { near } else { 0 })
}

fn harm(image: &mut Image, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = place(image, random);
        let mut bytes = match random.below(4) {
            0 => number(random).to_le_bytes()[..[1, 2, 4, 8][random.below(4) as usize]].to_vec(),
            1 => std::vec![random.next() as u8; 1],
            2 => {
                let from = place(image, random);
                let mut other = std::vec![0; (8 << random.below(4)).min(image.len - from) as usize];
                image.read(from, &mut other);
                other
            }
            _ => number(random).to_le_bytes().to_vec(),
        };
        bytes.truncate((image.len - at) as usize);
        image.write(at, &bytes);
    }
}

#[test]
fn no_store_however_malicious_stops_its_reader() {
    let seed = first_seed("hostile stores");
    let taken = mutant::with(Mutant { blank_crc: true, ..Mutant::default() }, || {
        let mut taken = 0;
        for seed in seed..seed + 25 {
            let mut random = Random::new(seed);
            let steps: Vec<Step> = (0..12).map(|_| any_step(&mut random)).collect();
            let image = run(&formatted(random.one_in(3)), &Rc::new(Model::default()), &steps).0.image;
            for _ in 0..150 {
                let mut harmed = image.clone();
                harm(&mut harmed, &mut random);
                taken += withstand(harmed) as usize;
            }
        }
        taken
    });
    std::println!("{taken} taken");
    assert!(taken > 100, "{taken} of 3750 stores got past the checks");
}

#[test]
fn every_refusal_says_what_to_do() {
    let mut scratch = std::vec![0; SCRATCH];
    let mut refusal = |at: u64, bytes: &[u8]| -> (OpenError, String) {
        let mut image = formatted(false);
        image.write(at, bytes);
        let error = Store::open(Recorder::from(image), &mut scratch).err().expect("refused");
        (error, std::format!("{error}"))
    };
    assert_eq!(refusal(0, b"something else").0, OpenError::Foreign);
    let (newer, text) = refusal(8, &2u32.to_le_bytes());
    assert_eq!(newer, OpenError::Newer { found: 2, known: 1 });
    assert!(text.contains("newer outlast"));
    let (damaged, text) = refusal(40, &[1]);
    assert_eq!(damaged, OpenError::Damaged("its superblock fails its checksum"));
    assert!(text.contains("older generation"));
    assert!(refusal(HEADS[1], &[9; 64]).1.contains("heads"));
    let mut image = formatted(false);
    image.len -= PAGE;
    let short = Store::open(Recorder::from(image), &mut scratch).err();
    assert_eq!(short, Some(OpenError::TooShort { found: super::history::LEN - PAGE, needed: super::history::LEN }));
    let small = Store::open(Recorder::from(formatted(false)), &mut scratch[..1000]).err();
    assert!(matches!(small, Some(OpenError::Scratch { found: 1000, needed }) if needed as usize <= SCRATCH));
    let empty = Store::open(Recorder::from(Image::new(0)), &mut scratch).err();
    assert_eq!(empty, Some(OpenError::Foreign));
}
