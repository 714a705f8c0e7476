//! Power losses of a durable store, in the middle of everything.

use super::history::{any_step, formatted, perform, Step, SCRATCH};
use super::image::{Image, Op, Recorder};
use super::medium::Medium;
use super::model::{compare, compare_frames, journal, Change, Model, CHUNKS};
use super::mutant::{self, Mutant};
use super::random::{first_seed, Random};
use crate::{Store, StoreError, PAGE};
use std::format;
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;

/// What may be found: the state of the last commit that was acknowledged, or of one that was under way.
#[derive(Clone)]
struct Expected {
    acknowledged: Rc<Model>,
    under_way: Rc<Model>,
}

impl Expected {
    /// Opens what is left and compares; gives the state found, and the recovery.
    fn check(&self, left: &Image, scratch: &mut [u8]) -> Result<(Rc<Model>, Recorder), String> {
        let (mut store, recovered) =
            Store::open(Recorder::from(left.clone()), scratch).map_err(|error| format!("open: {error}"))?;
        let candidates = [&self.acknowledged, &self.under_way];
        let model = candidates.into_iter().find(|model| model.seq == recovered.seq);
        let model = model.ok_or(format!("{recovered:?}, but {} was acknowledged", self.acknowledged.seq))?;
        if (recovered.lost, store.seq()) != (0, recovered.seq) {
            return Err(format!("{recovered:?}, but the next commit follows {}", store.seq()));
        }
        compare(&store, model)?;
        compare_frames(&store, model)?;
        let found = journal(&mut store);
        if !candidates.into_iter().any(|known| known.seq == model.seq && known.journal == found) {
            return Err(format!("the journal has {} entries, not {}", found.len(), model.journal.len()));
        }
        Ok((Rc::new(Model { journal: found, ..Model::clone(model) }), store.into_region()))
    }
}

/// What is tried after every change.
#[derive(Clone, Copy)]
struct Effort {
    /// Every subset of so many unsynced sectors, as they are in the cache.
    bits: u32,
    /// Random subsets, in any version.
    samples: u64,
    /// Power is lost again in one of so many recoveries, and also after a death that loses nothing; 0 for never.
    again: u64,
    /// One of so many states is given to the caller.
    keep: u64,
}

/// All that can happen to a record of a few sectors.
const TINY: Effort = Effort { bits: 6, samples: 0, again: 0, keep: 1 };

/// Opens a store that is whole on its medium, does the steps, and loses power after each of their changes.
/// Gives some of what was left, and what an unharmed run leaves.
#[allow(clippy::type_complexity)]
fn lose_power_everywhere(
    image: &Image,
    state: &Rc<Model>,
    steps: &[Step],
    effort: Effort,
    random: &mut Random,
) -> Result<(Vec<(Rc<Model>, Image)>, (Rc<Model>, Image)), String> {
    let mut scratch = std::vec![0; SCRATCH];
    let mut simulated = std::vec![0; SCRATCH];
    let (mut store, _) = Store::open(Recorder::from(image.clone()), &mut scratch).unwrap();
    let (mut medium, mut found, mut state) = (Medium::new(image.clone()), Vec::new(), state.clone());
    store.region.log.drain(..).for_each(|op| medium.apply(&op));
    for step in steps {
        let after = perform(&mut store, step, &state);
        let expected = Expected { acknowledged: state, under_way: after.clone() };
        for (at, op) in store.region.log.drain(..).enumerate() {
            medium.apply(&op);
            let told = |error| format!("{step:?}: change {at}, {op:?}: {error}");
            lose_power_here(&medium, &expected, effort, random, &mut simulated, &mut found).map_err(told)?;
        }
        state = after;
    }
    // Acknowledged: it must be there, whatever else is lost.
    let expected = Expected { acknowledged: state.clone(), under_way: state.clone() };
    let told = |error| format!("acknowledged: {error}");
    lose_power_here(&medium, &expected, effort, random, &mut simulated, &mut found).map_err(told)?;
    Ok((found, (state, medium.cached)))
}

fn lose_power_here(
    medium: &Medium,
    expected: &Expected,
    Effort { bits, samples, again, keep }: Effort,
    random: &mut Random,
    scratch: &mut [u8],
    found: &mut Vec<(Rc<Model>, Image)>,
) -> Result<(), String> {
    let sectors = medium.unsynced.len() as u32;
    let subsets = if sectors <= bits { 1 << sectors } else { 0 };
    for number in 0..subsets + samples {
        let mut sector = 0;
        let left = medium.after_power_loss(|versions| {
            sector += 1;
            match number.checked_sub(subsets) {
                None => versions * (number >> (sector - 1) & 1) as usize,
                Some(0) => versions,
                Some(_) => random.below(versions as u64 + 1) as usize,
            }
        });
        let (model, recovery) = expected.check(&left, scratch)?;
        if again > 0 && random.one_in(again) {
            let expected = Expected { acknowledged: model.clone(), under_way: model.clone() };
            lose_power_again(Medium::new(left.clone()), &recovery.log, &expected, random, scratch)?;
        }
        if random.one_in(keep) {
            found.push((model, left));
        }
    }
    if again > 0 && random.one_in(again.div_ceil(4)) {
        // The process dies and leaves its cache to the next one, which recovers; then power fails.
        let (_, recovery) = expected.check(&medium.cached, scratch)?;
        lose_power_again(medium.clone(), &recovery.log, expected, random, scratch)
            .map_err(|error| format!("after a death: {error}"))?;
    }
    Ok(())
}

/// A recovery changes the medium by `log`; power fails after each change.
fn lose_power_again(
    mut medium: Medium,
    log: &[Op],
    expected: &Expected,
    random: &mut Random,
    scratch: &mut [u8],
) -> Result<(), String> {
    for (at, op) in log.iter().enumerate() {
        medium.apply(op);
        for arrived in 0..4 {
            let left = medium.after_power_loss(|versions| match arrived {
                0 => 0,
                1 => versions,
                _ => random.below(versions as u64 + 1) as usize,
            });
            expected.check(&left, scratch).map_err(|error| format!("recovery's change {at}, {op:?}: {error}"))?;
        }
    }
    Ok(())
}

/// The same transaction as the program makes it when it is executed again: some of it differs.
fn made_again(step: &Step, random: &mut Random) -> Step {
    let Step::Commit(changes) = step else { return step.clone() };
    let mut changes = changes.clone();
    let last = changes.len().saturating_sub(1);
    if let Some(Change::Page { fill, .. } | Change::Diff { fill, .. } | Change::Put { fill, .. }) =
        changes.get_mut(last)
    {
        *fill = random.next();
    }
    Step::Commit(changes)
}

/// Random steps; after power losses the program goes on from what is left, often by the same steps again.
fn long_history(seed: u64, rounds: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let (mut image, mut state) = (formatted(true), Rc::new(Model::default()));
    let mut steps: Vec<Step> = Vec::new();
    for round in 0..rounds {
        if steps.is_empty() {
            steps = (0..=random.below(3)).map(|_| any_step(&mut random)).collect();
            steps.retain(|step| !matches!(step, Step::Reopen));
        }
        let effort = Effort { bits: 3, samples: 3, again: 12, keep: 4 };
        let (found, unharmed) =
            lose_power_everywhere(&image, &state, &steps, effort, &mut random).map_err(|error| {
                format!(
                    "round {round}: {error}
in {steps:#?}"
                )
            })?;
        if found.is_empty() || random.one_in(2) {
            (state, image) = unharmed;
            steps.clear();
        } else {
            (state, image) = random.pick(&found).clone();
            match random.one_in(4) {
                true => steps.clear(),
                false => steps = steps.iter().map(|step| made_again(step, &mut random)).collect(),
            }
        }
    }
    Ok(())
}

fn small_steps() -> Vec<Step> {
    let a = CHUNKS[3];
    Vec::from([
        Step::Commit(Vec::from([Change::Put { kind: 1, key: 1, len: 100, fill: 2 }])),
        Step::Commit(Vec::from([Change::Diff { addr: a, lines: 3, fill: 3 }])),
        Step::Commit(Vec::from([Change::Drop { start: a, end: a + PAGE }])),
        Step::Commit(Vec::from([Change::Page { addr: a + PAGE, fill: 4 }])),
        // The third absent page of a transaction goes into its frame.
        Step::Commit((1..4).map(|n| Change::Page { addr: CHUNKS[1] + n * PAGE, fill: n }).collect()),
        Step::Journal { kind: 1, len: 900, fill: 5 },
        Step::ClearJournal,
        Step::Fold,
    ])
}

#[test]
fn every_subset_of_unsynced_sectors_of_small_steps() {
    let mut random = Random::new(7);
    let first = Step::Commit(Vec::from([Change::Page { addr: CHUNKS[3], fill: 1 }]));
    for step in small_steps() {
        let effort = Effort { bits: 12, samples: 200, again: 40, keep: 100 };
        let steps = [first.clone(), Step::Journal { kind: 2, len: 30, fill: 6 }, step];
        let found = lose_power_everywhere(&formatted(true), &Rc::default(), &steps, effort, &mut random);
        assert!(found.unwrap_or_else(|error| panic!("{error}")).0.len() > 1);
    }
}

#[test]
fn an_acknowledged_durable_commit_survives_random_power_losses() {
    let seed = first_seed("power losses");
    for seed in seed..seed + 12 {
        long_history(seed, 8).unwrap_or_else(|error| panic!("OUTLAST_SEED={seed}: {error}"));
    }
}

/// A record loses its second sector; it is made again, with a difference in its first sector; this time only the second
/// sector arrives: the old record is complete, but its place in time is gone.
fn stale_record_completed_by_a_later_power_loss() -> Result<(), String> {
    let mut random = Random::new(3);
    let changes = |fill| {
        [Step::Commit(Vec::from([
            Change::Put { kind: 0, key: 0, len: 100, fill },
            Change::Put { kind: 0, key: 1, len: 1000, fill: 1 },
        ]))]
    };
    let (found, _) = lose_power_everywhere(&formatted(true), &Rc::default(), &changes(1), TINY, &mut random)?;
    for (model, left) in found.iter().filter(|(model, _)| model.seq == 0) {
        lose_power_everywhere(left, model, &changes(2), TINY, &mut random)?;
    }
    Ok(())
}

#[test]
fn a_stale_record_never_counts() {
    stale_record_completed_by_a_later_power_loss().unwrap();
}

#[test]
fn without_the_epoch_check_a_stale_record_is_noticed() {
    let mutant = Mutant { ignore_epoch: true, ..Mutant::default() };
    assert!(mutant::with(mutant, stale_record_completed_by_a_later_power_loss).is_err());
}

#[test]
fn without_the_checksum_a_torn_record_is_noticed() {
    let found = mutant::with(Mutant { ignore_crc: true, ..Mutant::default() }, || {
        let steps = [Step::Commit(Vec::from([Change::Put { kind: 1, key: 1, len: 700, fill: 3 }]))];
        lose_power_everywhere(&formatted(true), &Rc::default(), &steps, TINY, &mut Random::new(5))
    });
    assert!(found.is_err());
}

/// A durable store on a medium that can be told to fail.
struct Failing<'s> {
    store: Store<'s, Recorder>,
    medium: Medium,
    state: Rc<Model>,
}

impl<'s> Failing<'s> {
    /// A store with four pages.
    fn new(scratch: &'s mut [u8]) -> Failing<'s> {
        let image = formatted(true);
        let (store, _) = Store::open(Recorder::from(image.clone()), scratch).unwrap();
        let mut failing = Failing { store, medium: Medium::new(image), state: Rc::default() };
        failing.perform(&four_pages(1));
        failing
    }

    fn perform(&mut self, step: &Step) {
        self.state = perform(&mut self.store, step, &self.state);
    }

    /// Whatever is lost, the state is the acknowledged one.
    fn lose_power(&mut self) {
        compare(&self.store, &self.state).unwrap();
        let expected = Expected { acknowledged: self.state.clone(), under_way: self.state.clone() };
        self.store.region.log.drain(..).for_each(|op| self.medium.apply(&op));
        let effort = Effort { bits: 8, samples: 20, again: 10, keep: 1000 };
        let (mut random, mut scratch) = (Random::new(11), std::vec![0; SCRATCH]);
        lose_power_here(&self.medium, &expected, effort, &mut random, &mut scratch, &mut Vec::new()).unwrap();
    }

    fn change_and_fail(&mut self) {
        self.store.begin();
        Change::Page { addr: CHUNKS[0], fill: 2 }.make(&mut self.store, &self.state);
        assert_eq!(self.store.commit(), Err(StoreError::Sync(5)));
        assert_eq!(self.store.commit(), Err(StoreError::Sync(5)), "it stays refused");
        assert_eq!(self.store.seq(), self.state.seq);
    }
}

fn four_pages(fill: u64) -> Step {
    Step::Commit((0..4).map(|n| Change::Page { addr: CHUNKS[n], fill }).collect())
}

/// Once a sync fails, the kernel takes the pages for clean: they are written again, or what they hold is lost.
#[test]
fn a_commit_whose_sync_fails_never_counts() {
    let mut scratch = std::vec![0; SCRATCH];
    let mut failing = Failing::new(&mut scratch);
    failing.lose_power();
    failing.store.region.syncs_left = Some(0);
    failing.change_and_fail();
    assert_eq!(failing.store.abort(), Err(StoreError::Sync(5)), "nobody knows what is on the medium");
    failing.change_and_fail();
    failing.store.region.syncs_left = None;
    failing.store.abort().unwrap();
    failing.perform(&Step::Journal { kind: 1, len: 10, fill: 1 });
    failing.lose_power();
}

#[test]
fn a_fold_whose_sync_fails_can_be_done_again() {
    // The mark, the base, the head.
    for good in 0..3 {
        for commit_between in [false, true] {
            let mut scratch = std::vec![0; SCRATCH];
            let mut failing = Failing::new(&mut scratch);
            failing.store.region.syncs_left = Some(good);
            assert_eq!(failing.store.fold(), Err(StoreError::Sync(5)));
            failing.store.region.syncs_left = None;
            failing.lose_power();
            if commit_between {
                failing.store.begin();
                let committed = failing.store.commit();
                failing.store.abort().unwrap();
                assert_eq!(committed.is_err(), good == 2, "refused while the head is in doubt");
                let state = Model { seq: failing.store.seq(), ..Model::clone(&failing.state) };
                failing.state = Rc::new(state);
                failing.lose_power();
            }
            failing.perform(&Step::Fold);
            failing.lose_power();
            failing.perform(&four_pages(3));
            failing.lose_power();
        }
    }
}
