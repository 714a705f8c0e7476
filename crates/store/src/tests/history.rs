//! Histories: what a program and its deaths do to a store, step by step, with the state before and after each.

use super::image::{Image, Recorder};
use super::model::{Change, Model, CHUNKS, PAGES};
use super::random::Random;
use crate::{Params, Store, StoreError, CHUNK, PAGE};
use std::rc::Rc;
use std::vec::Vec;

/// Bytes of a simulated region: room for four chunks.
pub const LEN: u64 = 14 << 20;
/// Bytes of working memory for it.
pub const SCRATCH: usize = 160 << 10;

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    Commit(Vec<Change>),
    /// Without settling, where the store lags.
    Lag(Vec<Change>),
    Settle,
    Abort(Vec<Change>),
    Fold,
    Journal {
        kind: u16,
        len: usize,
        fill: u64,
    },
    ClearJournal,
    Reopen,
}

/// A step that was done: the changes `from..to` of the log, and the state around it.
pub struct Done {
    pub from: usize,
    pub to: usize,
    pub before: Rc<Model>,
    pub after: Rc<Model>,
}

/// An empty store's image.
pub fn formatted(durable: bool) -> Image {
    formatted_with(Params { durable, ..Params::default() })
}

/// The same of one that is more than that.
pub fn formatted_with(params: Params) -> Image {
    let mut scratch = std::vec![0; SCRATCH];
    let params = Params { ring_len: 16 << 10, id: *b"a store's own id", ..params };
    let store = Store::format(Recorder::from(Image::new(LEN)), &params, &mut scratch).unwrap();
    store.into_region().image
}

/// Does one step to an open store; what follows shall hold. A transaction that finds no room is aborted.
pub fn perform(store: &mut Store<Recorder>, step: &Step, before: &Rc<Model>) -> Rc<Model> {
    let mut after = Model::clone(before);
    match step {
        Step::Commit(changes) | Step::Lag(changes) => {
            store.begin();
            for change in changes {
                change.make(store, &after);
                after.change(change);
            }
            let committed = match step {
                Step::Lag(_) => store.commit_unsettled(),
                _ => store.commit(),
            };
            match committed {
                Ok(seq) => {
                    assert_eq!(seq, before.seq + 1);
                    after.seq = seq;
                    after.journal.clear();
                }
                Err(StoreError::NoRoom(_)) => {
                    store.abort().unwrap();
                    return before.clone();
                }
                Err(error) => panic!("{error}"),
            }
        }
        Step::Abort(changes) => {
            store.begin();
            for change in changes {
                change.make(store, &after);
                after.change(change);
            }
            store.abort().unwrap();
            return before.clone();
        }
        Step::Fold => store.fold().unwrap(),
        Step::Settle => store.settle().unwrap(),
        Step::Journal { kind, len, fill } => {
            let bytes = super::model::content(*fill)[..*len].to_vec();
            store.journal_append(*kind, &bytes).unwrap();
            after.journal.push((*kind, Rc::new(bytes)));
        }
        Step::ClearJournal => {
            store.journal_clear().unwrap();
            after.journal.clear();
        }
        Step::Reopen => unreachable!("done by `run`"),
    }
    Rc::new(after)
}

/// Does all steps, starting from `image`, which holds `start`; gives the log, and how it divides into steps.
pub fn run(image: &Image, start: &Rc<Model>, steps: &[Step]) -> (Recorder, Vec<Done>) {
    let mut scratch = std::vec![0; SCRATCH];
    let (mut region, mut done, mut state) = (Recorder::from(image.clone()), Vec::new(), start.clone());
    let mut steps = steps.iter().peekable();
    loop {
        let from = region.log.len();
        let (mut store, _) = Store::open(region, &mut scratch).unwrap();
        done.push(Done { from, to: store.region().log.len(), before: state.clone(), after: state.clone() });
        while let Some(step) = steps.next_if(|step| !matches!(step, Step::Reopen)) {
            let from = store.region().log.len();
            let after = perform(&mut store, step, &state);
            done.push(Done { from, to: store.region().log.len(), before: state, after: after.clone() });
            state = after;
        }
        region = store.into_region();
        if steps.next().is_none() {
            return (region, done);
        }
    }
}

fn any_page(random: &mut Random) -> u64 {
    random.pick(&CHUNKS) + random.pick(&PAGES) * PAGE
}

fn any_change(random: &mut Random) -> Change {
    let fill = random.next();
    match random.below(11) {
        10 => {
            // Not beyond the last address there is.
            let chunk = *random.pick(&[CHUNKS[0], CHUNKS[1], CHUNKS[3]]);
            Change::Pages {
                addr: chunk + random.pick(&[0, 1, 63, 511]) * PAGE,
                count: 2 + random.below(2),
                fill: fill >> 1,
            }
        }
        0..=2 => Change::Page { addr: any_page(random), fill },
        3..=4 => Change::Diff { addr: any_page(random), lines: random.next() & random.next() & random.next(), fill },
        5 => {
            let start = any_page(random);
            Change::Drop { start, end: start + PAGE * random.pick(&[1, 2, 64, 512]) }
        }
        6 => {
            let start = *random.pick(&CHUNKS);
            Change::Drop { start, end: start + CHUNK * random.pick(&[1, 1, 3, 1 << 20]) }
        }
        7..=8 => Change::Put {
            kind: random.below(2) as u16,
            key: random.below(3),
            len: *random.pick(&[0, 1, 8, 100, 700]),
            fill,
        },
        _ => Change::Delete { kind: random.below(2) as u16, key: random.below(3) },
    }
}

/// A random step; folds when the store would want to be folded are up to chance.
pub fn any_step(random: &mut Random) -> Step {
    let changes = |random: &mut Random| (0..random.below(5)).map(|_| any_change(random)).collect();
    match random.below(16) {
        0..=8 => Step::Commit(changes(random)),
        9 => Step::Abort(changes(random)),
        10..=11 => Step::Fold,
        12..=13 => Step::Journal { kind: random.below(9) as u16, len: random.below(200) as usize, fill: random.next() },
        14 => Step::ClearJournal,
        _ => Step::Reopen,
    }
}
