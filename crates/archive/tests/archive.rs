//! Generations are whole, or not there.

mod support;

use outlast_archive::{Archive, ArchiveError, Generation, Hold, Policy, Target, Writer};
use outlast_store::{FileRegion, Params, Store, PAGE, SCRATCH_LEN};
use std::fs;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use support::{commit, content, holds, Home, State, POLICY};

#[test]
fn a_generation_takes_the_room_of_what_changed() {
    let home = Home::new();
    let (mut store, mut state, mut archive) = (home.store(), State::new(), home.archive(POLICY));
    commit(&mut store, &mut state, (0..5000).map(|page| (page, page * 77 + 1)));
    let first = (home.keep(&mut archive).unwrap(), state.clone());
    commit(&mut store, &mut state, [(3, 9), (4, 9), (4999, 10), (77_777, 11)]);
    let second = (home.keep(&mut archive).unwrap(), state.clone());
    assert!(second.0.bytes < first.0.bytes / 20, "{} and {}", first.0.bytes, second.0.bytes);
    for (kept, state) in [&first, &second] {
        assert!(holds(&archive, kept.number, state));
        assert_eq!(kept.pages, state.len() as u64);
    }
    // Another process knows the same.
    drop(archive);
    let mut archive = home.archive(POLICY);
    assert_eq!(archive.kept().len(), 2);
    commit(&mut store, &mut state, [(1, 5)]);
    let third = home.keep(&mut archive).unwrap();
    assert!(holds(&archive, third.number, &state) && holds(&archive, second.0.number, &second.1));
}

#[test]
fn a_store_made_of_a_generation_is_the_state_that_was() {
    let home = Home::new();
    let (mut store, mut state, mut archive) = (home.store(), State::new(), home.archive(POLICY));
    commit(&mut store, &mut state, (0..900).map(|page| (page, page + 1)));
    let kept = home.keep(&mut archive).unwrap();
    let then = state.clone();
    commit(&mut store, &mut state, (0..900).map(|page| (page, page + 2)));
    let mut generation = archive.generation(kept.number).unwrap();
    generation.verify().unwrap();
    let params = Params { base_seq: 41, ..*store.params() };
    let journal = vec![(3, b"undo".to_vec())];
    generation.write_to(Target { file: home.file("other"), params, journal }).unwrap();
    let region = FileRegion::open(home.file("other")).unwrap();
    let (mut other, recovered) = Store::open(region, Vec::leak(vec![0; SCRATCH_LEN as usize])).unwrap();
    assert_eq!((recovered.seq, recovered.lost), (42, 0));
    let mut page = [0; PAGE as usize];
    for (addr, fill) in &then {
        assert!(other.read_page(*addr, &mut page).unwrap() && page == content(*fill));
    }
    assert_eq!(other.stats().live_pages, then.len() as u64);
    let mut object = [0; 8];
    assert_eq!(other.object(7, 1, &mut object), Some(8));
    assert_eq!(usize::from_le_bytes(object), then.len());
    let mut undo = Vec::new();
    other.journal_for_each(&mut |_, kind, bytes| undo.push((kind, bytes.to_vec())));
    assert_eq!(undo, [(3, b"undo".to_vec())]);
}

/// Whatever was written of a generation when everything stopped, those before it are whole, and so is the next.
#[test]
fn a_generation_that_is_cut_short_is_none() {
    let home = Home::new();
    let (mut store, mut state, mut archive) = (home.store(), State::new(), home.archive(POLICY));
    commit(&mut store, &mut state, (0..300).map(|page| (page, page + 1)));
    home.keep(&mut archive).unwrap();
    let (first, before) = (state.clone(), home.files());
    commit(&mut store, &mut state, (100..200).map(|page| (page, page + 9)));
    home.keep(&mut archive).unwrap();
    let after = home.files();
    let added: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).cloned().collect();
    let (index, pages) = (&added[0], &added[1]);
    assert!(pages.to_str().unwrap().ends_with(".pages"));
    let new = index.with_file_name(format!("{}.new", index.file_name().unwrap().to_str().unwrap()));
    let mut cuts = Vec::new();
    for cut in (0..=after[pages].len()).step_by(after[pages].len() / 30) {
        cuts.push(vec![(pages, after[pages][..cut].to_vec())]);
    }
    for cut in (0..=after[index].len()).step_by(after[index].len() / 50) {
        cuts.push(vec![(pages, after[pages].clone()), (&new, after[index][..cut].to_vec())]);
    }
    assert!(cuts.len() > 50);
    for written in cuts {
        let mut files = before.clone();
        files.extend(written.into_iter().map(|(path, bytes)| (path.clone(), bytes)));
        home.lay_out(&files);
        let mut archive = home.archive(POLICY);
        assert_eq!(archive.kept().iter().map(|kept| kept.number).collect::<Vec<_>>(), [1]);
        assert!(holds(&archive, 1, &first));
        assert_eq!(home.files(), before);
        let next = home.keep(&mut archive).unwrap();
        assert!(holds(&archive, next.number, &state) && holds(&archive, 1, &first));
    }
}

/// Stopped while it is given up, a generation is there or not, and the others are whole.
#[test]
fn giving_up_spares_what_others_need() {
    let home = Home::new();
    let (mut store, mut states) = (home.store(), Vec::new());
    let mut state = State::new();
    let mut archive = home.archive(POLICY);
    for round in 0..6 {
        commit(
            &mut store,
            &mut state,
            (0..400).filter(|page| page % (round + 1) == 0).map(|page| (page, page + 1000 * round)),
        );
        home.keep(&mut archive).unwrap();
        states.push(state.clone());
    }
    let all = home.files();
    let taken = archive.taken();
    for gone in 1..=6u64 {
        home.lay_out(&all);
        // The index goes first: whoever opens the archive then has to do the rest.
        fs::remove_file(home.path().join(format!("store.gen.{gone}"))).unwrap();
        let archive = home.archive(POLICY);
        for (n, state) in states.iter().enumerate().filter(|(n, _)| *n as u64 + 1 != gone) {
            assert!(holds(&archive, n as u64 + 1, state), "without {gone}, {} is damaged", n + 1);
        }
        assert!(archive.taken() < taken);
    }
    home.lay_out(&all);
    let mut archive = home.archive(POLICY);
    archive.give_up_after(2);
    assert_eq!(archive.kept().len(), 2);
    assert!(holds(&archive, 1, &states[0]) && holds(&archive, 2, &states[1]));
    assert_eq!(home.files().len(), 4);
    archive.place().clear();
    assert!(home.files().is_empty());
}

#[test]
fn the_budget_is_kept_and_the_oldest_go_first() {
    let home = Home::new();
    let (mut store, mut state) = (home.store(), State::new());
    let budget = 1 << 20;
    let mut archive = home.archive(Policy { budget, ..POLICY });
    let mut seed = 1u64;
    let mut noise = |store: &mut Store<FileRegion>, state: &mut State, pages: u64| {
        store.begin();
        for page in 0..pages {
            let bytes: [u8; 4096] = std::array::from_fn(|_| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (seed >> 56) as u8
            });
            store.page(page * PAGE, &bytes);
            state.insert(page * PAGE, 0);
        }
        store.commit().unwrap();
    };
    for _ in 0..12 {
        noise(&mut store, &mut state, 60);
        home.keep(&mut archive).unwrap();
        assert!(archive.taken() <= budget, "{} bytes", archive.taken());
    }
    let numbers: Vec<u64> = archive.kept().iter().map(|kept| kept.number).collect();
    assert!(numbers.len() >= 2 && numbers.ends_with(&[11, 12]), "{numbers:?}");
    noise(&mut store, &mut state, 600);
    assert_eq!(home.keep(&mut archive), Err(ArchiveError::OverBudget));
    // The next that is small enough is kept again.
    store.begin();
    store.drop_range(0, 600 * PAGE);
    store.commit().unwrap();
    assert!(home.keep(&mut archive).is_ok());
}

/// Damage anywhere is an error or does not matter; it is never a state that was not, nor the end of the process.
#[test]
fn damage_is_noticed() {
    let home = Home::new();
    let (mut store, mut state, mut archive) = (home.store(), State::new(), home.archive(POLICY));
    commit(&mut store, &mut state, (0..80).map(|page| (page, page + 1)));
    home.keep(&mut archive).unwrap();
    commit(&mut store, &mut state, (30..40).map(|page| (page, page + 5)));
    home.keep(&mut archive).unwrap();
    let whole = home.files();
    let (mut noticed, mut tried) = (0, 0);
    for (path, bytes) in &whole {
        for at in (0..bytes.len()).step_by(bytes.len() / 700 + 1) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(path, damaged).unwrap();
            tried += 1;
            match Generation::read(&home.place(), 2).and_then(|mut generation| generation.verify()) {
                Ok(()) => assert!(holds(&archive, 2, &state), "{path:?} at {at}"),
                Err(ArchiveError::Damaged(2) | ArchiveError::Newer(2)) => noticed += 1,
                Err(other) => panic!("{path:?} at {at}: {other}"),
            }
        }
        fs::write(path, bytes).unwrap();
    }
    assert!(noticed > tried / 3, "{noticed} of {tried}");
    for cut in 0..200 {
        let (path, bytes) = whole.iter().nth(cut % whole.len()).unwrap();
        fs::write(path, &bytes[..bytes.len() * cut / 200]).unwrap();
        let _ = Archive::list(&home.place()).unwrap();
        drop(home.archive(POLICY));
        home.lay_out(&whole);
    }
}

/// The engine's side, in this process.
#[derive(Default)]
struct PutOff {
    asked: AtomicU32,
    held: AtomicBool,
}

impl Hold for PutOff {
    fn put_off(&self) {
        self.asked.fetch_add(1, SeqCst);
        self.held.store(true, SeqCst);
    }

    fn release(&self) {
        self.held.store(false, SeqCst);
    }

    fn is_over(&self) -> bool {
        false
    }
}

/// All pages are written in every commit, so that a mixture shows.
fn storm(hears: bool) {
    const PAGES: u64 = 400;
    let home = Home::new();
    let (mut store, hold, over) = (home.store(), PutOff::default(), AtomicBool::new(false));
    let write = |store: &mut Store<FileRegion>, round: u64| {
        store.begin();
        for page in (0..PAGES).map(|page| page * 3) {
            store.page(page * PAGE, &content(round));
        }
        store.put(1, 1, &round.to_le_bytes());
        store.commit().unwrap();
    };
    write(&mut store, 1);
    let (mut kept, mut restless) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 1;
            while !over.load(SeqCst) {
                round += 1;
                write(&mut store, round);
                if store.ring_used() > 32 << 20 || store.wants_fold() && !(hears && hold.held.load(SeqCst)) {
                    store.fold().unwrap();
                }
            }
        });
        let mut archive = home.archive(POLICY);
        for _ in 0..16 {
            match archive.keep(home.file("store").as_fd(), &Writer::Program(&hold)) {
                Ok(_) => kept += 1,
                Err(ArchiveError::Restless) => restless += 1,
                Err(error) => panic!("{error}"),
            }
        }
        over.store(true, SeqCst);
        for kept in archive.kept() {
            let (mut pages, mut first) = (0, None);
            let mut generation = archive.generation(kept.number).unwrap();
            generation
                .each(&mut |_, bytes| {
                    for page in bytes.chunks_exact(PAGE as usize) {
                        assert_eq!(page, *first.get_or_insert_with(|| page.to_vec()), "generation {}", kept.number);
                        pages += 1;
                    }
                })
                .unwrap();
            assert_eq!(pages, PAGES);
        }
    });
    assert!(hold.asked.load(SeqCst) >= 16 && !hold.held.load(SeqCst));
    assert!(!hears || kept > 8, "{kept} kept, {restless} times too restless");
}

#[test]
fn who_writes_without_pause_is_copied_all_the_same() {
    storm(true);
}

/// Nothing depends on the engine's doing what it is asked.
#[test]
fn who_does_not_put_off_a_fold_is_never_copied_wrongly() {
    storm(false);
}
