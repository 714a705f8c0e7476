//! Arbitrary histories against the model, shrunk to the shortest that fails.

use super::history::{formatted, perform, Step, SCRATCH};
use super::image::Recorder;
use super::model::{compare, compare_frames, journal, Change, Model, CHUNKS, PAGES};
use crate::{Store, CHUNK, PAGE};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::rc::Rc;
use std::vec::Vec;

fn page() -> impl Strategy<Value = u64> {
    (select(&CHUNKS), select(&PAGES)).prop_map(|(chunk, page)| chunk + page * PAGE)
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (page(), any::<u64>()).prop_map(|(addr, fill)| Change::Page { addr, fill }),
        (page(), any::<u64>(), any::<u64>()).prop_map(|(addr, lines, fill)| Change::Diff { addr, lines, fill }),
        (page(), 0..600u64).prop_map(|(start, pages)| Change::Drop { start, end: start + pages * PAGE }),
        (select(&CHUNKS), 0..30u64).prop_map(|(start, chunks)| Change::Drop { start, end: start + chunks * CHUNK }),
        (0..2u16, 0..4u64, 0..3000usize, any::<u64>()).prop_map(|(kind, key, len, fill)| Change::Put {
            kind,
            key,
            len,
            fill
        }),
        (0..2u16, 0..4u64).prop_map(|(kind, key)| Change::Delete { kind, key }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => vec(change(), 0..8).prop_map(Step::Commit),
        1 => vec(change(), 0..8).prop_map(Step::Abort),
        2 => Just(Step::Fold),
        1 => (any::<u16>(), 0..300usize, any::<u64>()).prop_map(|(kind, len, fill)| Step::Journal { kind, len, fill }),
        1 => Just(Step::ClearJournal),
        2 => Just(Step::Reopen),
    ]
}

fn matches(store: &mut Store<Recorder>, model: &Model) -> Result<(), TestCaseError> {
    compare(store, model).map_err(TestCaseError::fail)?;
    prop_assert_eq!(store.seq(), model.seq);
    prop_assert_eq!(store.stats().live_pages, model.pages.len() as u64);
    prop_assert!(journal(store) == model.journal);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_gives_what_the_model_gives(steps in vec(step(), 0..40), durable in any::<bool>()) {
        let mut scratch = std::vec![0; SCRATCH];
        let mut region = Recorder::from(formatted(durable));
        let mut model = Rc::new(Model::default());
        let mut rest: &[Step] = &steps;
        while !rest.is_empty() {
            let (mut store, recovered) = Store::open(region, &mut scratch).unwrap();
            prop_assert_eq!((recovered.seq, recovered.lost), (model.seq, 0));
            compare_frames(&store, &model).map_err(TestCaseError::fail)?;
            matches(&mut store, &model)?;
            let until = rest.iter().position(|step| matches!(step, Step::Reopen)).unwrap_or(rest.len());
            for step in &rest[..until] {
                model = perform(&mut store, step, &model);
                matches(&mut store, &model)?;
                if matches!(step, Step::Fold) {
                    compare_frames(&store, &model).map_err(TestCaseError::fail)?;
                }
            }
            rest = rest.get(until + 1..).unwrap_or_default();
            region = store.into_region();
            region.log = Vec::new();
        }
    }
}
