//! Whoever looks on while somebody else writes sees the state of one commit, or knows that it does not.

use super::history::{any_step, formatted, run, Step, SCRATCH};
use super::image::{Image, Op};
use super::model::Model;
use super::random::{first_seed, Random};
use crate::{Page, Region, Store, SyncError, PAGE};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::vec::Vec;

/// A region in which the writer goes on whenever somebody reads.
struct Moving<'a> {
    image: RefCell<Image>,
    rest: Cell<&'a [Op]>,
    random: RefCell<Random>,
    /// The writer makes a change at every n-th read.
    pace: u64,
}

impl Moving<'_> {
    fn go_on(&self) {
        while let Some((next, rest)) = self.rest.get().split_first() {
            if !self.random.borrow_mut().one_in(self.pace) {
                break;
            }
            self.image.borrow_mut().apply(next);
            self.rest.set(rest);
        }
    }
}

impl Region for Moving<'_> {
    fn len(&self) -> u64 {
        self.image.borrow().len
    }

    fn read(&self, off: u64, into: &mut [u8]) {
        self.go_on();
        self.image.borrow().read(off, into);
    }

    fn load(&self, off: u64) -> u64 {
        let mut word = [0; 8];
        self.read(off, &mut word);
        u64::from_le_bytes(word)
    }

    fn write(&mut self, _: u64, _: &[u8]) {
        panic!("who looks on writes nothing");
    }

    fn publish(&mut self, _: u64, _: u64) {
        panic!("who looks on writes nothing");
    }

    fn discard(&mut self, _: u64, _: u64) {
        panic!("who looks on writes nothing");
    }

    fn sync(&mut self, _: u64, _: u64) -> Result<(), SyncError> {
        panic!("who looks on writes nothing");
    }
}

/// Everything that an onlooker sees: frames, with the ring's pieces put over them, and objects.
fn look(store: &Store<Moving>) -> Option<Model> {
    let mut seen = Model { seq: store.seq(), ..Model::default() };
    let mut pages: BTreeMap<u64, Page> = BTreeMap::new();
    store.runs(0, 1 << 57, &mut |addr, off, len| {
        for at in (0..len).step_by(PAGE as usize) {
            let mut page = [0; PAGE as usize];
            store.region().read(off + at, &mut page);
            pages.insert(addr + at, page);
        }
    });
    let logged = store.each_logged(&mut |addr, at, off, len| {
        if let Some(page) = pages.get_mut(&addr) {
            store.region().read(off, &mut page[at as usize..(at + len) as usize]);
        }
    });
    store.objects(&mut |kind, key, len| {
        let mut bytes = std::vec![0; len];
        store.object(kind, key, &mut bytes);
        seen.objects.insert((kind, key), Rc::new(bytes));
    });
    seen.pages = pages.into_iter().map(|(addr, page)| (addr, Rc::new(page))).collect();
    logged.is_ok().then_some(seen)
}

/// How many looks held, and how many of those that did not had seen a state that never was.
#[derive(Default)]
struct Tally {
    held: u32,
    torn: u32,
}

fn look_on(seed: u64, durable: bool, tally: &mut Tally) {
    let mut random = Random::new(seed);
    let steps: Vec<Step> = (0..40).map(|_| any_step(&mut random)).collect();
    let image = formatted(durable);
    let (region, done) = run(&image, &Rc::default(), &steps);
    let states: BTreeMap<u64, Rc<Model>> = done.iter().map(|done| (done.after.seq, done.after.clone())).collect();
    let mut scratch = std::vec![0; SCRATCH];
    for _ in 0..30 {
        let start = random.below(region.log.len() as u64) as usize;
        let mut image = image.clone();
        region.log[..start].iter().for_each(|op| image.apply(op));
        let pace = *random.pick(&[2, 20, 200, 2000]);
        let random = RefCell::new(Random::new(random.next()));
        let moving = Moving { image: RefCell::new(image), rest: Cell::new(&region.log[start..]), random, pace };
        let Ok((store, recovered)) = Store::peek(moving, &mut scratch) else { continue };
        let Some(seen) = look(&store) else { continue };
        let right =
            states.get(&seen.seq).is_some_and(|wanted| seen.pages == wanted.pages && seen.objects == wanted.objects);
        if !store.still_holds() {
            tally.torn += !right as u32;
            continue;
        }
        tally.held += 1;
        assert!(right && recovered.lost == 0, "seed {seed}: commit {} was never like that, {recovered:?}", seen.seq);
    }
}

#[test]
fn an_onlooker_sees_one_commit_or_knows_that_it_does_not() {
    let mut tally = Tally::default();
    let first = first_seed("onlooker") % (1 << 32);
    // The first one: somebody opens the store between the last commit that was seen and the look.
    for seed in [2_082_216_770].into_iter().chain(first..first + 150) {
        look_on(seed, seed % 4 == 0, &mut tally);
    }
    // Else nothing was tried: neither what holds nor what does not.
    assert!(tally.held > 500 && tally.torn > 20, "{} held, {} were torn", tally.held, tally.torn);
}
