//! Death by kill: a prefix of the changes in program order is kept, the last one possibly in part.

use super::history::{any_step, formatted, perform, run, Done, Step, SCRATCH};
use super::image::{Image, Op, Recorder};
use super::model::{compare, compare_frames, journal, Change, Model, CHUNKS};
use super::random::{first_seed, Random};
use crate::areas::COMMITTED;
use crate::word::unseal;
use crate::{Store, CHUNK, PAGE};
use std::format;
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;

/// What is tried at every cut.
#[derive(Clone, Copy)]
struct Depth {
    /// Tear every write at multiples of this many bytes; 0 for never.
    tear: usize,
    /// Cut every n-th recovery at each of its own changes, too; 0 for never.
    again: u64,
    /// Go on committing after every n-th recovery; 0 for never.
    onward: u64,
}

/// Where a cut lies in a history.
struct Cut<'a> {
    done: &'a Done,
    /// The last published commit.
    published: u64,
}

impl Cut<'_> {
    /// Opens the image; the state must be the last published one.
    fn check(&self, image: &Image, scratch: &mut [u8]) -> Result<Recorder, String> {
        let (mut store, recovered) =
            Store::open(Recorder::from(image.clone()), scratch).map_err(|error| format!("open: {error}"))?;
        let Done { before, after, .. } = self.done;
        let wanted = if self.published == after.seq { after } else { before };
        if (recovered.seq, recovered.lost, store.seq()) != (self.published, 0, self.published) {
            return Err(format!("{recovered:?}, but {} was published", self.published));
        }
        compare(&store, wanted)?;
        compare_frames(&store, wanted)?;
        let found = journal(&mut store);
        // An entry being appended may count or not.
        if found != wanted.journal && !(before.seq == after.seq && found == before.journal) {
            return Err(format!("the journal has {} entries, not {}", found.len(), wanted.journal.len()));
        }
        Ok(store.into_region())
    }

    /// What the program has after recovery.
    fn resumed(&self, image: &Image, scratch: &mut [u8]) -> (Rc<Model>, Image) {
        let (mut store, _) = Store::open(Recorder::from(image.clone()), scratch).unwrap();
        let Done { before, after, .. } = self.done;
        let mut model = Model::clone(if self.published == after.seq { after } else { before });
        model.journal = journal(&mut store);
        (Rc::new(model), store.into_region().image)
    }
}

/// Every piece of `op` that may be all that was kept of it, the whole last.
fn torn(op: &Op, step: usize) -> Vec<Op> {
    let mut pieces = Vec::new();
    match op {
        Op::Write { off, bytes } if step > 0 => {
            let cuts = (step..bytes.len()).step_by(step);
            pieces.extend(cuts.map(|cut| Op::Write { off: *off, bytes: bytes[..cut].to_vec() }));
        }
        Op::Discard { off, len } if step > 0 => {
            pieces.extend((1..(len / PAGE).min(4)).map(|pages| Op::Discard { off: *off, len: pages * PAGE }));
        }
        _ => {}
    }
    pieces.push(op.clone());
    pieces
}

/// Cuts the changes of `done[first..]` everywhere.
fn cut_everywhere(
    image: &Image,
    region: &Recorder,
    done: &[Done],
    first: usize,
    depth: Depth,
    random: &mut Random,
) -> Result<u64, String> {
    let (mut image, mut scratch, mut opened) = (image.clone(), std::vec![0; SCRATCH], 0);
    let mut published = done[0].before.seq;
    for (number, done) in done.iter().enumerate() {
        for at in done.from..done.to {
            let op = &region.log[at];
            let kept = if number < first { Vec::new() } else { torn(op, depth.tear) };
            for piece in kept {
                let mut cut_image = image.clone();
                cut_image.apply(&piece);
                if let Op::Publish { off: COMMITTED, value } = piece {
                    published = unseal(value).unwrap();
                }
                let cut = Cut { done, published };
                let told = |error| format!("step {number}, change {at}, {piece:?}: {error}");
                let recovery = cut.check(&cut_image, &mut scratch).map_err(told)?;
                opened += 1;
                if depth.again > 0 && random.one_in(depth.again) {
                    let mut second = cut_image.clone();
                    for (n, op) in recovery.log.iter().enumerate() {
                        for piece in torn(op, if depth.tear > 0 { depth.tear.max(64) } else { 0 }) {
                            let mut image = second.clone();
                            image.apply(&piece);
                            let told = |error| format!("step {number}, change {at}, recovery's change {n}: {error}");
                            cut.check(&image, &mut scratch).map_err(told)?;
                            opened += 1;
                        }
                        second.apply(op);
                    }
                }
                if depth.onward > 0 && random.one_in(depth.onward) {
                    let (model, image) = cut.resumed(&cut_image, &mut scratch);
                    let steps: Vec<Step> = (0..3).map(|_| any_step(random)).collect();
                    let (region, done) = run(&image, &model, &steps);
                    let rest = Depth { tear: 0, again: 0, onward: 0 };
                    let told = |error| format!("step {number}, change {at}, going on with {steps:?}: {error}");
                    opened += cut_everywhere(&image, &region, &done, 0, rest, random).map_err(told)?;
                }
            }
            image.apply(op);
            if let Op::Publish { off: COMMITTED, value } = op {
                published = unseal(*value).unwrap();
            }
        }
    }
    Ok(opened)
}

/// Steps that meet each other in every way a page, a chunk and an object can be used.
fn alphabet(salt: u64) -> Vec<Step> {
    let (a, b) = (CHUNKS[3], CHUNKS[1] + 511 * PAGE);
    vec_of([
        Step::Commit(vec_of([Change::Page { addr: a, fill: salt }])),
        Step::Commit(vec_of([
            Change::Diff { addr: a, lines: 1 << (salt % 64) | 1, fill: salt },
            Change::Put { kind: 1, key: 7, len: 20, fill: salt },
        ])),
        Step::Commit(vec_of([
            Change::Drop { start: a, end: a + CHUNK },
            Change::Page { addr: b, fill: salt },
            Change::Delete { kind: 1, key: 7 },
        ])),
        Step::Commit(vec_of([
            Change::Page { addr: a, fill: salt },
            Change::Drop { start: 0, end: 1 << 47 },
            Change::Page { addr: b + CHUNK, fill: salt },
        ])),
        Step::Abort(vec_of([Change::Page { addr: a + PAGE, fill: salt }, Change::Drop { start: a, end: a + PAGE }])),
        Step::Fold,
        Step::Journal { kind: 1, len: 40, fill: salt },
        Step::Reopen,
    ])
}

fn vec_of<T, const N: usize>(items: [T; N]) -> Vec<T> {
    Vec::from(items)
}

/// All histories of `len` steps; only the last step is cut, as shorter histories cut the others.
fn every_history(len: u32, depth: Depth) -> u64 {
    let (image, start) = (formatted(false), Rc::new(Model::default()));
    let (letters, mut opened, mut random) = (alphabet(0).len(), 0, Random::new(1));
    for number in 0..letters.pow(len) {
        let letter = |place: u32| number / letters.pow(place) % letters;
        let steps: Vec<Step> = (0..len).map(|place| alphabet(place as u64 + 1)[letter(place)].clone()).collect();
        let (region, done) = run(&image, &start, &steps);
        let last = done.len() - 1;
        match cut_everywhere(&image, &region, &done, last, depth, &mut random) {
            Ok(more) => opened += more,
            Err(error) => panic!("{error}\nin {steps:#?}"),
        }
    }
    opened
}

#[test]
fn every_short_history_survives_a_kill_after_every_write() {
    for len in 1..=4 {
        let opened = every_history(len, Depth { tear: 0, again: 0, onward: 0 });
        assert!(opened > 8u64.pow(len), "{opened} kills");
    }
}

#[test]
fn every_short_history_survives_a_write_torn_every_8_bytes() {
    every_history(1, Depth { tear: 1, again: 0, onward: 0 });
    every_history(2, Depth { tear: 8, again: 0, onward: 0 });
}

#[test]
fn every_short_history_survives_a_kill_of_its_recovery() {
    for len in 1..=3 {
        every_history(len, Depth { tear: 0, again: 1, onward: 0 });
    }
}

#[test]
fn long_histories_survive_kills_of_program_and_recovery_and_go_on() {
    let seed = first_seed("long histories, kills");
    for seed in seed..seed + 60 {
        let mut random = Random::new(seed);
        let steps: Vec<Step> = (0..25).map(|_| any_step(&mut random)).collect();
        let image = formatted(false);
        let (region, done) = run(&image, &Rc::new(Model::default()), &steps);
        let depth = Depth { tear: *random.pick(&[0, 512, 1000]), again: 15, onward: 15 };
        if let Err(error) = cut_everywhere(&image, &region, &done, 0, depth, &mut random) {
            panic!("OUTLAST_SEED={seed}: {error}\nin {steps:#?}");
        }
    }
}

#[test]
fn a_store_whose_making_was_cut_is_refused_or_empty() {
    let mut scratch = std::vec![0; SCRATCH];
    let region = Recorder::from(Image::new(super::history::LEN));
    let store = Store::format(region, &crate::Params::default(), &mut scratch).unwrap();
    let (log, mut image, mut empty) = (store.into_region().log, Image::new(super::history::LEN), 0);
    for op in &log {
        for piece in torn(op, 8) {
            let mut cut = image.clone();
            cut.apply(&piece);
            match Store::open(Recorder::from(cut), &mut scratch) {
                Ok((store, _)) => {
                    compare(&store, &Model::default()).unwrap();
                    empty += 1;
                }
                Err(crate::OpenError::Foreign | crate::OpenError::Damaged(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        image.apply(op);
    }
    assert_eq!(empty, 1, "only the complete one is a store");
}

#[test]
fn stores_in_use_match_the_model_without_any_kill() {
    let seed = first_seed("long histories, no kill");
    for seed in seed..seed + 60 {
        let mut random = Random::new(seed);
        let mut scratch = std::vec![0; SCRATCH];
        let (mut store, _) = Store::open(Recorder::from(formatted(false)), &mut scratch).unwrap();
        let mut model = Rc::new(Model::default());
        for _ in 0..60 {
            let step = any_step(&mut random);
            if matches!(step, Step::Reopen) {
                continue;
            }
            model = perform(&mut store, &step, &model);
            compare(&store, &model).unwrap_or_else(|error| panic!("OUTLAST_SEED={seed}: {error} after {step:?}"));
            assert_eq!(journal(&mut store), model.journal, "OUTLAST_SEED={seed}");
        }
    }
}
