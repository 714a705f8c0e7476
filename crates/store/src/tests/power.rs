//! Power loss of a durable store: what was synced is kept; of the rest, any subset of 512-byte sectors, each in any of
//! the versions it had since.

use super::history::{any_step, formatted, perform, Step, SCRATCH};
use super::image::{Image, Op, Recorder};
use super::model::{compare, compare_frames, journal, Change, Model, CHUNKS};
use super::mutant::{self, Mutant};
use super::random::{first_seed, Random};
use crate::{Store, StoreError, PAGE};
use std::collections::BTreeMap;
use std::format;
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;

const SECTOR: u64 = 512;
type Sector = [u8; SECTOR as usize];

/// A medium with a volatile cache before it.
#[derive(Clone)]
struct Medium {
    /// What was synced.
    synced: Image,
    /// What a reader sees.
    cached: Image,
    /// Sectors that were changed since they were synced, with every version in the cache since.
    unsynced: BTreeMap<u64, Vec<Sector>>,
}

impl Medium {
    fn new(image: Image) -> Medium {
        Medium { synced: image.clone(), cached: image, unsynced: BTreeMap::new() }
    }

    fn apply(&mut self, op: &Op) {
        self.cached.apply(op);
        let (off, len) = match op {
            Op::Write { off, bytes } => (*off, bytes.len() as u64),
            Op::Publish { off, .. } => (*off, 8),
            Op::Discard { off, len } => return self.discard(*off, *len),
            Op::Sync { off, len } => return self.sync(*off, *len),
        };
        if len > 0 {
            (off / SECTOR..=(off + len - 1) / SECTOR).for_each(|sector| self.changed(sector));
        }
    }

    fn changed(&mut self, sector: u64) {
        let mut version = [0; SECTOR as usize];
        self.cached.read(sector * SECTOR, &mut version);
        self.unsynced.entry(sector).or_default().push(version);
    }

    /// Only sectors that hold something change.
    fn discard(&mut self, off: u64, len: u64) {
        let inside = |page: &u64| (off / PAGE..(off + len) / PAGE).contains(page);
        let stored: Vec<u64> = self.synced.pages().map(|(page, _)| page).filter(inside).collect();
        let sectors = |page: u64| page * PAGE / SECTOR..(page + 1) * PAGE / SECTOR;
        let mut gone: Vec<u64> = stored.into_iter().flat_map(sectors).collect();
        gone.extend(self.unsynced.range(off / SECTOR..(off + len) / SECTOR).map(|(sector, _)| *sector));
        gone.sort_unstable();
        gone.dedup();
        gone.into_iter().for_each(|sector| self.changed(sector));
    }

    fn sync(&mut self, off: u64, len: u64) {
        let sectors: Vec<u64> =
            self.unsynced.range(off / SECTOR..(off + len) / SECTOR).map(|(sector, _)| *sector).collect();
        for sector in sectors {
            let versions = self.unsynced.remove(&sector).expect("listed");
            self.synced.write(sector * SECTOR, versions.last().expect("never empty"));
        }
    }

    /// What is left if `choose(versions)` says which version of a sector arrived: 0 for none, n for the n-th.
    fn after_power_loss(&self, mut choose: impl FnMut(usize) -> usize) -> Image {
        let mut left = self.synced.clone();
        for (sector, versions) in &self.unsynced {
            if let Some(version) = choose(versions.len()).checked_sub(1) {
                left.write(sector * SECTOR, &versions[version]);
            }
        }
        left
    }
}

/// What may be found: the state of the last commit that was acknowledged, or of one that was under way.
#[derive(Clone)]
struct Expected {
    acknowledged: Rc<Model>,
    under_way: Option<Rc<Model>>,
}

impl Expected {
    /// Opens what is left and compares; gives the state found, and the recovery.
    fn check(&self, left: &Image, scratch: &mut [u8]) -> Result<(Rc<Model>, Recorder), String> {
        let (mut store, recovered) =
            Store::open(Recorder::from(left.clone()), scratch).map_err(|error| format!("open: {error}"))?;
        let candidates = [Some(&self.acknowledged), self.under_way.as_ref()];
        let model = candidates.into_iter().flatten().find(|model| model.seq == recovered.seq);
        let model = model.ok_or(format!("{recovered:?}, but {} was acknowledged", self.acknowledged.seq))?;
        if (recovered.lost, store.seq()) != (0, recovered.seq) {
            return Err(format!("{recovered:?}, but the next commit follows {}", store.seq()));
        }
        compare(&store, model)?;
        compare_frames(&store, model)?;
        let found = journal(&mut store);
        let known = candidates.into_iter().flatten().filter(|known| known.seq == model.seq);
        if !known.clone().any(|known| known.journal == found) {
            return Err(format!("the journal has {} entries, not {}", found.len(), model.journal.len()));
        }
        Ok((Rc::new(Model { journal: found, ..Model::clone(model) }), store.into_region()))
    }
}

/// The changes a step makes to a store that holds `state`, and what may be found after each of them.
fn attempt(image: &Image, state: &Rc<Model>, step: &Step, scratch: &mut [u8]) -> (Vec<Op>, Expected, Rc<Model>) {
    let (mut store, _) = Store::open(Recorder::from(image.clone()), scratch).unwrap();
    let opened = store.region().log.len();
    let after = perform(&mut store, step, state);
    let mut log = store.into_region().log;
    let under_way = (*after != **state).then(|| after.clone());
    (log.split_off(opened), Expected { acknowledged: state.clone(), under_way }, after)
}

/// A store whose medium holds all of the image of an open store, so that only the step's own changes are in the cache.
fn opened(image: &Image, scratch: &mut [u8]) -> Image {
    Store::open(Recorder::from(image.clone()), scratch).unwrap().0.into_region().image
}

/// What is tried after every change.
#[derive(Clone, Copy)]
struct Effort {
    /// Every subset of so many unsynced sectors, as they are in the cache.
    bits: u32,
    /// Random subsets, in any version.
    samples: u64,
    /// Power is lost again in one of so many recoveries; 0 for never.
    again: u64,
    /// One of so many states is given to the caller.
    keep: u64,
}

/// All that can happen to a record of a few sectors.
const TINY: Effort = Effort { bits: 6, samples: 0, again: 0, keep: 1 };

/// Loses power after each of the step's changes. Gives some of what was left.
fn lose_power_everywhere(
    image: &Image,
    state: &Rc<Model>,
    step: &Step,
    effort: Effort,
    random: &mut Random,
) -> Result<Vec<(Rc<Model>, Image)>, String> {
    let Effort { bits, samples, again, keep } = effort;
    let mut scratch = std::vec![0; SCRATCH];
    let (log, expected, after) = attempt(image, state, step, &mut scratch);
    let mut medium = Medium::new(opened(image, &mut scratch));
    let mut found = Vec::new();
    for (at, op) in log.iter().enumerate() {
        medium.apply(op);
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
            let told = |error| format!("change {at} of {}, {op:?}: {error}", log.len());
            let (model, recovery) = expected.check(&left, &mut scratch).map_err(told)?;
            if again > 0 && random.one_in(again) {
                lose_power_again(&left, &recovery, &model, random, &mut scratch).map_err(told)?;
            }
            if random.one_in(keep) {
                found.push((model, left));
            }
        }
    }
    // Acknowledged: it must be there, whatever else is lost.
    let acknowledged = Expected { acknowledged: after, under_way: None };
    let left = medium.after_power_loss(|versions| random.below(versions as u64 + 1) as usize);
    let (model, _) = acknowledged.check(&left, &mut scratch).map_err(|error| format!("acknowledged: {error}"))?;
    found.push((model, left));
    Ok(found)
}

/// Recovery found `model` and did `recovery.log`; power fails after each of its changes.
fn lose_power_again(
    left: &Image,
    recovery: &Recorder,
    model: &Rc<Model>,
    random: &mut Random,
    scratch: &mut [u8],
) -> Result<(), String> {
    let mut medium = Medium::new(left.clone());
    let expected = Expected { acknowledged: model.clone(), under_way: None };
    for (at, op) in recovery.log.iter().enumerate() {
        medium.apply(op);
        for arrived in 0..3 {
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

/// Random steps; after power losses the program goes on from what is left, usually by the same step again.
fn long_history(seed: u64, steps: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let (mut image, mut state) = (formatted(true), Rc::new(Model::default()));
    let mut scratch = std::vec![0; SCRATCH];
    let mut step = any_step(&mut random);
    for number in 0..steps {
        while matches!(step, Step::Reopen) {
            step = any_step(&mut random);
        }
        let told = |error| format!("step {number} ({step:?}): {error}");
        let found = lose_power_everywhere(
            &image,
            &state,
            &step,
            Effort { bits: 4, samples: 3, again: 12, keep: 4 },
            &mut random,
        )
        .map_err(told)?;
        if random.one_in(2) {
            let (_, _, after) = attempt(&image, &state, &step, &mut scratch);
            let (mut store, _) = Store::open(Recorder::from(image), &mut scratch).unwrap();
            perform(&mut store, &step, &state);
            (image, state) = (store.into_region().image, after);
            step = any_step(&mut random);
        } else {
            let (model, left) = random.pick(&found);
            (image, state) = (left.clone(), model.clone());
            step = if random.one_in(4) { any_step(&mut random) } else { made_again(&step, &mut random) };
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
        Step::Commit(
            (1..4).map(|n| Change::Page { addr: CHUNKS[1] + n % 2 * 511 * PAGE + n * PAGE, fill: n }).collect(),
        ),
        Step::Journal { kind: 1, len: 900, fill: 5 },
        Step::Fold,
    ])
}

#[test]
fn every_subset_of_unsynced_sectors_of_small_steps() {
    let mut random = Random::new(7);
    let mut scratch = std::vec![0; SCRATCH];
    let image = formatted(true);
    let (mut store, _) = Store::open(Recorder::from(image), &mut scratch).unwrap();
    let first = Step::Commit(Vec::from([Change::Page { addr: CHUNKS[3], fill: 1 }]));
    let state = perform(&mut store, &first, &Rc::new(Model::default()));
    let image = store.into_region().image;
    for step in small_steps() {
        let found = lose_power_everywhere(
            &image,
            &state,
            &step,
            Effort { bits: 12, samples: 200, again: 40, keep: 100 },
            &mut random,
        );
        assert!(found.unwrap_or_else(|error| panic!("{step:?}: {error}")).len() > 1);
    }
}

#[test]
fn an_acknowledged_durable_commit_survives_random_power_losses() {
    let seed = first_seed("power losses");
    for seed in seed..seed + 40 {
        long_history(seed, 12).unwrap_or_else(|error| panic!("OUTLAST_SEED={seed}: {error}"));
    }
}

/// A record loses its second sector; it is made again, with a difference in its first sector; this time only the second
/// sector arrives: the old record is complete, but its place in time is gone.
fn stale_record_completed_by_a_later_power_loss() -> Result<(), String> {
    let mut random = Random::new(3);
    let changes = |fill| {
        Step::Commit(Vec::from([
            Change::Put { kind: 0, key: 0, len: 100, fill },
            Change::Put { kind: 0, key: 1, len: 1000, fill: 1 },
        ]))
    };
    let (image, state) = (formatted(true), Rc::new(Model::default()));
    for (_, left) in lose_power_everywhere(&image, &state, &changes(1), TINY, &mut random)? {
        let mut scratch = std::vec![0; SCRATCH];
        let (store, recovered) = Store::open(Recorder::from(left), &mut scratch).map_err(|error| format!("{error}"))?;
        if recovered.seq == 0 {
            lose_power_everywhere(&store.into_region().image, &state, &changes(2), TINY, &mut random)?;
        }
    }
    Ok(())
}

#[test]
fn a_stale_record_never_counts() {
    stale_record_completed_by_a_later_power_loss().unwrap();
}

#[test]
fn without_the_epoch_check_a_stale_record_is_noticed() {
    let found = mutant::with(Mutant { ignore_epoch: true, ..Mutant::default() }, || {
        stale_record_completed_by_a_later_power_loss()
    });
    assert!(found.is_err());
}

#[test]
fn without_the_checksum_a_torn_record_is_noticed() {
    let found = mutant::with(Mutant { ignore_crc: true, ..Mutant::default() }, || {
        let mut random = Random::new(5);
        let step = Step::Commit(Vec::from([Change::Put { kind: 1, key: 1, len: 700, fill: 3 }]));
        lose_power_everywhere(&formatted(true), &Rc::new(Model::default()), &step, TINY, &mut random)
    });
    assert!(found.is_err());
}

#[test]
fn a_sync_that_fails_leaves_the_published_state() {
    let mut scratch = std::vec![0; SCRATCH];
    let (mut store, _) = Store::open(Recorder::from(formatted(true)), &mut scratch).unwrap();
    let one = Step::Commit(Vec::from([Change::Page { addr: CHUNKS[0], fill: 1 }]));
    let state = perform(&mut store, &one, &Rc::new(Model::default()));
    store.region.fail_syncs = true;
    store.begin();
    Change::Page { addr: CHUNKS[0], fill: 2 }.make(&mut store, &state);
    assert_eq!(store.commit(), Err(StoreError::Sync(5)));
    assert_eq!(store.seq(), 1);
    store.abort().unwrap();
    assert_eq!(store.fold(), Err(StoreError::Sync(5)));
    compare(&store, &state).unwrap();
    store.region.fail_syncs = false;
    store.fold().unwrap();
    let two = Step::Commit(Vec::from([Change::Page { addr: CHUNKS[0], fill: 3 }]));
    let state = perform(&mut store, &two, &state);
    let image = store.into_region().image;
    Expected { acknowledged: state, under_way: None }.check(&image, &mut scratch).unwrap();
}
