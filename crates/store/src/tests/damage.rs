//! Single damaged bits: noticed, or without effect. Never a state that nobody committed.

use super::history::{formatted, run, Step, LEN, SCRATCH};
use super::image::{Image, Op, Recorder};
use super::model::{compare, compare_frames, Change, Model, CHUNKS};
use super::random::Random;
use crate::areas::{Areas, COMMITTED, FOLDING, HEADS, JOURNAL_RUN};
use crate::{OpenError, Store, CHUNK, PAGE};
use std::collections::BTreeMap;
use std::format;
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;

/// By sequence number.
type States = BTreeMap<u64, Rc<Model>>;

fn commit(changes: &[Change]) -> Step {
    Step::Commit(changes.to_vec())
}

fn steps() -> Vec<Step> {
    let a = CHUNKS[3];
    let put = |key, fill| Change::Put { kind: 1, key, len: 60, fill };
    Vec::from([
        commit(&[Change::Page { addr: a, fill: 1 }, Change::Page { addr: CHUNKS[1], fill: 2 }, put(1, 1)]),
        commit(&[Change::Diff { addr: a, lines: 5, fill: 3 }, put(2, 2)]),
        Step::Fold,
        commit(&[Change::Drop { start: CHUNKS[1], end: CHUNKS[1] + CHUNK }, put(1, 4)]),
        commit(&[Change::Diff { addr: a, lines: 9, fill: 5 }, Change::Page { addr: CHUNKS[2], fill: 6 }]),
        commit(&[Change::Delete { kind: 1, key: 2 }, Change::Page { addr: CHUNKS[1], fill: 7 }]),
    ])
}

/// Every byte that says something, but for frames, which have no checksums.
fn metadata(image: &Image, areas: &Areas) -> Vec<u64> {
    let words = [COMMITTED, FOLDING, JOURNAL_RUN].map(|off| off..off + 8);
    let mut ranges = Vec::from([0..512, HEADS[0]..HEADS[0] + 64, HEADS[1]..HEADS[1] + 64]);
    ranges.extend(words);
    let spans = areas.spans();
    ranges.extend(spans[..spans.len() - 1].iter().map(|span| span.off..span.off + span.len));
    let stored: Vec<u64> = image.pages().map(|(page, _)| page).collect();
    let known = |off: &u64| stored.binary_search(&(off / PAGE)).is_ok();
    let zero = |off: &u64| {
        let mut near = [0; 64];
        image.read(off / 64 * 64, &mut near);
        near == [0; 64]
    };
    ranges.into_iter().flatten().filter(known).filter(|off| !zero(off)).collect()
}

/// Opens the image after flipping one bit.
fn flip(image: &Image, off: u64, bit: u32, published: u64, states: &States) -> Result<bool, String> {
    let mut scratch = std::vec![0; SCRATCH];
    let mut image = image.clone();
    let mut byte = [0];
    image.read(off, &mut byte);
    image.write(off, &[byte[0] ^ 1 << bit]);
    match Store::open(Recorder::from(image), &mut scratch) {
        Ok((store, recovered)) => {
            let right = recovered.seq + recovered.lost == published || recovered.damaged_word;
            let state = states.get(&recovered.seq).filter(|_| right).ok_or(format!("{recovered:?}"))?;
            if store.seq() < published && !recovered.damaged_word {
                return Err(format!("numbers of lost commits are used again after {}", store.seq()));
            }
            compare(&store, state)?;
            compare_frames(&store, state)?;
            Ok(recovered.lost > 0 || recovered.damaged_word || recovered.older_head)
        }
        Err(OpenError::Damaged(_) | OpenError::Foreign | OpenError::Newer { .. }) => Ok(true),
        Err(error) => Err(format!("{error:?}")),
    }
}

/// Flips bits of the image left by a death; gives how many flips were noticed.
fn flip_everywhere(image: &Image, published: u64, states: &States) -> usize {
    let (mut noticed, mut random) = (0, Random::new(9));
    let areas = Areas::divide(LEN, 16 << 10).unwrap();
    for off in metadata(image, &areas) {
        let bit = random.below(8) as u32;
        match flip(image, off, bit, published, states) {
            Ok(seen) => noticed += seen as usize,
            Err(error) => panic!("bit {bit} of byte {off}: {error}"),
        }
    }
    noticed
}

#[test]
fn one_damaged_bit_never_yields_a_state_nobody_committed() {
    let (image, start) = (formatted(false), Rc::new(Model::default()));
    let (region, done) = run(&image, &start, &steps());
    let states = done.iter().map(|done| (done.after.seq, done.after.clone())).collect();
    assert!(flip_everywhere(&region.image, 5, &states) > 1000);
}

#[test]
fn one_damaged_bit_after_a_death_within_a_commit_or_a_fold() {
    let (image, start) = (formatted(false), Rc::new(Model::default()));
    let mut steps = steps();
    steps.push(Step::Fold);
    let (region, done) = run(&image, &start, &steps);
    let states = done.iter().map(|done| (done.after.seq, done.after.clone())).collect();
    for step in [&done[done.len() - 2], &done[done.len() - 1]] {
        // Also where the frames have changed and the head has not.
        for cut in [step.to - 1, step.to - 3, (step.from + step.to) / 2] {
            let mut dead = image.clone();
            let body = |op: &&Op| !matches!(op, Op::Sync { .. });
            region.log[..cut].iter().filter(body).for_each(|op| dead.apply(op));
            assert!(flip_everywhere(&dead, step.before.seq, &states) > 1000);
        }
    }
}
