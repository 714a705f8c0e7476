//! Power losses and deaths of a store that lags, after every change: what is left is the last state that was settled, or one that
//! was being settled; a death without a power loss leaves the last one that was published.

use super::history::{any_step, formatted_with, perform, Step, SCRATCH};
use super::image::{Image, Op, Recorder};
use super::medium::Medium;
use super::model::{compare, compare_frames, journal, Change, Model, CHUNKS};
use super::mutant::{self, Mutant};
use super::random::{first_seed, Random};
use crate::{Params, Store, PAGE};
use std::format;
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;

/// The boot in which the store is used, the one after a power loss, and the one after another.
const BOOT: u64 = 1;
const NEXT_BOOT: u64 = 2;
const BOOT_AFTER: u64 = 3;

fn formatted() -> Image {
    formatted_with(Params { durable: true, lags: true, ..Params::default() })
}

fn recorder(image: &Image, cache: u64) -> Recorder {
    Recorder { image: image.clone(), cache, ..Recorder::default() }
}

/// Opens what a power loss left; the state must be one of `candidates`. Gives it, and the recovery.
fn after_power_loss(
    left: &Image,
    boot: u64,
    candidates: &[Rc<Model>],
    scratch: &mut [u8],
) -> Result<(Rc<Model>, Recorder), String> {
    let (mut store, recovered) =
        Store::open(recorder(left, boot), scratch).map_err(|error| format!("open: {error}"))?;
    let found = candidates.iter().find(|model| model.seq == recovered.seq);
    let model = found.ok_or_else(|| {
        let known: Vec<u64> = candidates.iter().map(|model| model.seq).collect();
        format!("{recovered:?}, but settled was one of {known:?}")
    })?;
    if !recovered.power_lost || (recovered.lost, store.seq(), store.settled()) != (0, recovered.seq, recovered.seq) {
        return Err(format!("{recovered:?}, but the next commit follows {}", store.seq()));
    }
    compare(&store, model)?;
    compare_frames(&store, model)?;
    if !journal(&mut store).is_empty() {
        return Err("the journal outlived the power loss".into());
    }
    Ok((Rc::new(Model { journal: Vec::new(), ..Model::clone(model) }), store.into_region()))
}

/// Opens what a death left, in the same boot.
fn after_death(cached: &Image, step: [&Rc<Model>; 2], scratch: &mut [u8]) -> Result<(Rc<Model>, Recorder), String> {
    let (mut store, recovered) =
        Store::open(recorder(cached, BOOT), scratch).map_err(|error| format!("open: {error}"))?;
    if recovered.power_lost || recovered.lost > 0 {
        return Err(format!("{recovered:?}, and no power was lost"));
    }
    let found = journal(&mut store);
    let is_it = |model: &&Rc<Model>| model.seq == recovered.seq && model.journal == found;
    let model = *step.iter().find(|model| is_it(model)).ok_or(format!("{recovered:?} after a death"))?;
    compare(&store, model)?;
    compare_frames(&store, model)?;
    Ok((model.clone(), store.into_region()))
}

/// Every step's changes one by one, and what may be left after each.
struct History<'r> {
    medium: Medium,
    settled: Rc<Model>,
    published: Rc<Model>,
    random: &'r mut Random,
    scratch: Vec<u8>,
    /// Some of what power losses left.
    left: Vec<(Rc<Model>, Image)>,
}

impl History<'_> {
    /// `bits`: every subset of so many sectors; `samples`: random ones, in any version.
    fn lose_power(&mut self, candidates: &[Rc<Model>], bits: u32, samples: u64) -> Result<(), String> {
        let sectors = self.medium.unsynced.len() as u32;
        let subsets = if sectors <= bits { 1 << sectors } else { 0 };
        for number in 0..subsets + samples {
            let (mut sector, random) = (0, &mut *self.random);
            let left = self.medium.after_power_loss(|versions| {
                sector += 1;
                match number.checked_sub(subsets) {
                    None => versions * (number >> (sector - 1) & 1) as usize,
                    Some(0) => versions,
                    Some(1) => 0,
                    Some(_) => random.below(versions as u64 + 1) as usize,
                }
            });
            let (model, recovery) = after_power_loss(&left, NEXT_BOOT, candidates, &mut self.scratch)?;
            if self.random.one_in(16) {
                self.lose_power_again(Medium::new(left.clone()), &recovery.log, std::slice::from_ref(&model))?;
            }
            if self.random.one_in(8) {
                self.left.push((model, recovery.image));
            }
        }
        Ok(())
    }

    /// A recovery changes the medium by `log`; power fails after each change.
    fn lose_power_again(&mut self, mut medium: Medium, log: &[Op], candidates: &[Rc<Model>]) -> Result<(), String> {
        for (at, op) in log.iter().enumerate() {
            medium.apply(op);
            for arrived in 0..4 {
                let random = &mut *self.random;
                let left = medium.after_power_loss(|versions| match arrived {
                    0 => 0,
                    1 => versions,
                    _ => random.below(versions as u64 + 1) as usize,
                });
                after_power_loss(&left, BOOT_AFTER, candidates, &mut self.scratch)
                    .map_err(|error| format!("recovery's change {at}, {op:?}: {error}"))?;
            }
        }
        Ok(())
    }

    /// The process dies and leaves its cache to the next one, which recovers; then power fails.
    fn die(&mut self, after: &Rc<Model>, candidates: &[Rc<Model>]) -> Result<(), String> {
        let cached = self.medium.cached.clone();
        let (found, recovery) = after_death(&cached, [&self.published, after], &mut self.scratch)?;
        if self.random.one_in(8) {
            let candidates: Vec<_> = candidates.iter().cloned().chain([found]).collect();
            self.lose_power_again(self.medium.clone(), &recovery.log, &candidates)
                .map_err(|error| format!("after a death: {error}"))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, log: &[Op], after: Rc<Model>, bits: u32, samples: u64) -> Result<(), String> {
        let settles = matches!(step, Step::Commit(_) | Step::Fold | Step::Settle);
        let candidates = match settles {
            true => Vec::from([self.settled.clone(), after.clone()]),
            false => Vec::from([self.settled.clone()]),
        };
        for (at, op) in log.iter().enumerate() {
            self.medium.apply(op);
            let told = |error| format!("{step:?}: change {at}, {op:?}: {error}");
            self.lose_power(&candidates, bits, samples).map_err(told)?;
            self.die(&after, &candidates).map_err(told)?;
        }
        // A transaction that found no room has settled nothing.
        if settles && (after.seq > self.published.seq || !matches!(step, Step::Commit(_))) {
            self.settled = after.clone();
        }
        self.published = after;
        let settled = [self.settled.clone()];
        self.lose_power(&settled, bits, samples).map_err(|error| format!("{step:?}, done: {error}"))
    }
}

/// Does the steps, and loses power after each of their changes. Gives some of what was left.
fn lose_power_everywhere(
    (state, image): &(Rc<Model>, Image),
    steps: &[Step],
    (bits, samples): (u32, u64),
    random: &mut Random,
) -> Result<Vec<(Rc<Model>, Image)>, String> {
    let mut memory = std::vec![0; SCRATCH];
    let (mut store, _) = Store::open(recorder(image, BOOT), &mut memory).unwrap();
    let mut medium = Medium::new(image.clone());
    store.region.log.drain(..).for_each(|op| medium.apply(&op));
    let scratch = std::vec![0; SCRATCH];
    let (settled, published) = (state.clone(), state.clone());
    let mut history = History { medium, settled, published, random, scratch, left: Vec::new() };
    for step in steps {
        let after = perform(&mut store, step, &history.published);
        let log: Vec<Op> = store.region.log.drain(..).collect();
        history.step(step, &log, after, bits, samples)?;
    }
    Ok(history.left)
}

fn any_lagging_step(random: &mut Random) -> Step {
    match any_step(random) {
        Step::Commit(changes) if !random.one_in(4) => Step::Lag(changes),
        Step::Reopen => Step::Settle,
        step => step,
    }
}

fn long_history(seed: u64, rounds: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut state = (Rc::new(Model::default()), formatted());
    for round in 0..rounds {
        let steps: Vec<Step> = (0..3 + random.below(4)).map(|_| any_lagging_step(&mut random)).collect();
        let left = lose_power_everywhere(&state, &steps, (2, 4), &mut random)
            .map_err(|error| format!("round {round}: {error}\nin {steps:#?}"))?;
        if !left.is_empty() {
            state = random.pick(&left).clone();
        }
    }
    Ok(())
}

/// What an unsettled commit leaves: in frames, in the ring, in objects; and what may follow it.
fn small_histories() -> Vec<Vec<Step>> {
    let a = CHUNKS[3];
    let lag = |changes: &[Change]| Step::Lag(changes.to_vec());
    let commit = Step::Commit(Vec::from([Change::Put { kind: 1, key: 1, len: 40, fill: 9 }]));
    let frames: Vec<Change> = (1..5).map(|n| Change::Page { addr: CHUNKS[1] + n * PAGE, fill: n }).collect();
    let first = lag(&[Change::Diff { addr: a, lines: 3, fill: 3 }]);
    let ends = [commit, Step::Settle, Step::Fold, first.clone()];
    let ends = ends.into_iter().map(|end| [first.clone(), Step::Lag(frames.clone()), end]);
    let journalled = Step::Journal { kind: 1, len: 30, fill: 5 };
    ends.map(|steps| steps.into_iter().chain([journalled.clone()]).collect()).collect()
}

#[test]
fn every_subset_of_unsynced_sectors_of_commits_that_lag() {
    let mut random = Random::new(7);
    for steps in small_histories() {
        let begin = [Step::Commit(Vec::from([Change::Page { addr: CHUNKS[3], fill: 1 }]))];
        let steps: Vec<Step> = begin.into_iter().chain(steps).collect();
        let found = lose_power_everywhere(&(Rc::default(), formatted()), &steps, (9, 20), &mut random);
        assert!(found.unwrap_or_else(|error| panic!("{error}\nin {steps:#?}")).len() > 1);
    }
}

#[test]
fn a_power_loss_leaves_the_last_settled_state_and_a_death_the_last_published_one() {
    let seed = first_seed("lag");
    for seed in seed..seed + 4 {
        long_history(seed, 8).unwrap_or_else(|error| panic!("OUTLAST_SEED={seed}: {error}"));
    }
}

#[test]
fn without_syncs_a_loss_is_noticed() {
    let found = mutant::with(Mutant { skip_sync: true, ..Mutant::default() }, || {
        let steps = small_histories().concat();
        lose_power_everywhere(&(Rc::default(), formatted()), &steps, (3, 10), &mut Random::new(5))
    });
    assert!(found.is_err());
}

/// Whoever cannot tell whether power was lost goes back to what is on the medium for sure.
#[test]
fn an_unknown_cache_counts_as_a_power_loss() {
    let mut scratch = std::vec![0; SCRATCH];
    let (mut store, _) = Store::open(recorder(&formatted(), 0), &mut scratch).unwrap();
    let put = |key| Vec::from([Change::Put { kind: 1, key, len: 9, fill: 1 }]);
    let settled = perform(&mut store, &Step::Commit(put(1)), &Rc::default());
    perform(&mut store, &Step::Lag(put(2)), &settled);
    let image = store.into_region().image;
    let (store, recovered) = Store::open(recorder(&image, 0), &mut scratch).unwrap();
    assert!(recovered.power_lost && recovered.seq == settled.seq);
    compare(&store, &settled).unwrap();
}
