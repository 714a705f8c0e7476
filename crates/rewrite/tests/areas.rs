//! Where stubs lie, and what is remembered of sites.

#[path = "support/built.rs"]
mod built;

use built::{hex, plan_in, Built};
use outlast_rewrite::area::STUBS;
use outlast_rewrite::{Obstacle, Plan, Refusal, RefusedSites, Stub, StubAreas, AREA_LEN, STUB_LEN};

const CODE: u64 = 0x5555_0000_0000;

/// A site at some distance from [`CODE`].
fn site(distance: u64) -> Plan {
    let built = Built::new(CODE + distance, &hex("b8 01 00 00 00"), &hex("48 3d 00 f0 ff ff c3"));
    plan_in(&built.code(), built.site, &|_| false).unwrap()
}

#[test]
fn stubs_are_given_out_until_the_area_is_full() {
    let mut areas = Box::new(StubAreas::<2>::new());
    assert_eq!(areas.place(&site(0)), Err(Refusal::Full));
    let base = CODE + 0x100_0000;
    assert!(areas.add(base));
    for number in 0..STUBS as u64 {
        assert_eq!(areas.place(&site(number * 0x1000)), Ok(base + number * STUB_LEN as u64));
    }
    assert_eq!(areas.len(), STUBS);
    assert!(STUBS * STUB_LEN <= AREA_LEN as usize);
    assert_eq!(areas.place(&site(0x4000_0000)), Err(Refusal::Full));
    assert!(areas.has_room() && areas.add(base + AREA_LEN) && !areas.has_room() && !areas.add(base + 2 * AREA_LEN));
    assert_eq!(areas.place(&site(0x4000_0000)), Ok(base + AREA_LEN));
    assert_eq!(areas.stub_at(base + 5 * STUB_LEN as u64 + 41), Some(base + 5 * STUB_LEN as u64));
    assert_eq!(areas.stub_at(base - 1), None);
    assert_eq!(areas.stub_at(base + 2 * AREA_LEN), None);
}

#[test]
fn areas_out_of_reach_are_not_used() {
    let mut areas = Box::new(StubAreas::<4>::new());
    for distance in [0x8000_0000, 0x7fff_f000] {
        assert!(areas.add(CODE + distance) && areas.add(CODE - distance));
    }
    assert_eq!(areas.place(&site(0)), Err(Refusal::Full));
    let mut areas = Box::new(StubAreas::<1>::new());
    assert!(areas.add(CODE + 0x7ff0_0000));
    let plan = site(0);
    let stub = areas.place(&plan).unwrap();
    assert!(plan.link(stub, 0).is_ok());
}

#[test]
fn the_same_bytes_are_not_patched_twice() {
    let mut areas = Box::new(StubAreas::<1>::new());
    areas.add(CODE + 0x100_0000);
    let plan = site(0);
    areas.place(&plan).unwrap();
    assert_eq!(areas.place(&plan), Err(Refusal::Overlaps));
    let bytes = plan.overwritten();
    assert!(areas.overwritten().eq([bytes.clone()]));
    assert_eq!(areas.touching(bytes.end - 1..bytes.end).count(), 1);
    assert_eq!(areas.touching(bytes.end..bytes.end + 9).count(), 0);
    assert_eq!(areas.touching(0..bytes.start).count(), 0);
}

/// The stub of a call that was patched by what lies before it comes back right behind the call.
#[test]
fn bytes_that_a_stub_comes_back_to_are_not_overwritten() {
    let mut areas = Box::new(StubAreas::<1>::new());
    areas.add(CODE + 0x100_0000);
    // The same site before and after a branch to it appeared: planned by what lies before it, then by what follows.
    let built = Built::new(CODE, &hex("b8 01 00 00 00"), &hex("48 3d 00 f0 ff ff c3"));
    let before = plan_in(&built.code(), built.site, &|_| false).unwrap();
    let looping = Built::new(CODE, &hex("b8 01 00 00 00"), &hex("48 3d 00 f0 ff ff 75 f6 c3"));
    let after = plan_in(&looping.code(), looping.site, &|_| false).unwrap();
    assert_eq!((before.overwritten().end, after.at()), (built.site, built.site));
    areas.place(&before).unwrap();
    assert_eq!(areas.place(&after), Err(Refusal::Overlaps));
    // With the areas asked beforehand, nothing is left to plan.
    let refused = plan_in(&looping.code(), looping.site, &|range| areas.conflicts(range)).unwrap_err();
    assert_eq!(refused, Refusal::NoRoom { before: Obstacle::Forbidden, after: Obstacle::Forbidden });
}

/// Once a branch is moved into a stub, it is not found in the code; where it leads must still not be overwritten.
#[test]
fn bytes_that_a_moved_branch_leads_to_are_not_overwritten() {
    let mut areas = Box::new(StubAreas::<1>::new());
    areas.add(CODE + 0x100_0000);
    // test %eax,%eax; js +0x20
    let built = Built::new(CODE, &hex("e8 00 00 00 00 31 c0"), &hex("85 c0 78 20 c3"));
    let target = built.site + 6 + 0x20;
    areas.place(&plan_in(&built.code(), built.site, &|_| false).unwrap()).unwrap();
    assert!(areas.conflicts(target - 1..target + 4) && areas.conflicts(target - 4..target + 1));
    assert!(!areas.conflicts(target..target + 5) && !areas.conflicts(target - 5..target));
}

/// `dlclose`: the stubs of the library are free again, those of others stay.
#[test]
fn unmapped_code_gives_its_stubs_back() {
    let mut areas = Box::new(StubAreas::<1>::new());
    let base = CODE + 0x100_0000;
    areas.add(base);
    for number in 0..10 {
        areas.place(&site(number * 0x1000)).unwrap();
    }
    assert_eq!(areas.drop_range(CODE + 0x3000..CODE + 0x5000), 2);
    assert_eq!(areas.len(), 8);
    assert_eq!(areas.touching(CODE + 0x3000..CODE + 0x5000).count(), 0);
    let next: Vec<u64> = (0..3).map(|n| areas.place(&site(0x10_0000 + n * 0x1000)).unwrap()).collect();
    assert_eq!(next, [3, 4, 10].map(|n| base + n * STUB_LEN as u64));
    areas.drop_areas(base..base + 1);
    assert!(areas.is_empty() && areas.stub_at(base).is_none() && areas.has_room());
}

/// Code whose original bytes are back: a thread may still be in its stub, so nobody else gets that.
#[test]
fn retired_stubs_are_not_given_out_again() {
    let mut areas = Box::new(StubAreas::<1>::new());
    let base = CODE + 0x100_0000;
    areas.add(base);
    for number in 0..3 {
        areas.place(&site(number * 0x1000)).unwrap();
    }
    assert_eq!(areas.retire_range(CODE..CODE + 0x2000), 2);
    assert_eq!((areas.len(), areas.touching(CODE..CODE + 0x2000).count()), (1, 0));
    assert!(!areas.conflicts(CODE..CODE + 0x2000));
    assert_eq!(areas.place(&site(0)), Ok(base + 3 * STUB_LEN as u64));
    assert_eq!(areas.retire_range(0..1), 0);
}

/// After a recovery the table is made anew from the stubs in memory.
#[test]
fn stubs_are_taken_up_again() {
    let base = CODE + 0x100_0000;
    let stub = |number: u64, distance: u64| {
        let address = base + number * STUB_LEN as u64;
        let patch = site(distance).link(address, 0x2000_0000_0000).unwrap();
        (address, Stub::read(address, &patch.stub).unwrap())
    };
    let mut areas = Box::new(StubAreas::<1>::new());
    let (first, second, fifth) = (stub(0, 0), stub(1, 0x1000), stub(5, 0x2000));
    assert!(!areas.adopt(first.0, &first.1, true), "no such area");
    areas.add(base);
    assert!(areas.areas().eq([base]));
    assert!(areas.adopt(fifth.0, &fifth.1, true) && areas.adopt(first.0, &first.1, true));
    assert!(areas.adopt(second.0, &second.1, false));
    assert!(!areas.adopt(first.0, &first.1, true) && !areas.adopt(second.0, &second.1, true), "taken");
    assert!(!areas.adopt(stub(7, 0).0, &stub(7, 0).1, true), "the same bytes twice");
    assert!(!areas.adopt(first.0 + 8, &first.1, false), "no place of a stub");
    assert_eq!(areas.len(), 2);
    assert_eq!(areas.place(&site(0)), Err(Refusal::Overlaps));
    assert!(areas.conflicts(site(0x2000).overwritten()) && !areas.conflicts(site(0x1000).overwritten()));
    let next: Vec<u64> = (0..4).map(|n| areas.place(&site(0x10_0000 + n * 0x1000)).unwrap()).collect();
    assert_eq!(next, [2, 3, 4, 6].map(|n| base + n * STUB_LEN as u64));
}

#[test]
fn the_nearest_gap_is_found() {
    let reach = site(0).reach();
    let at = CODE + 0x500;
    let near = |mapped: &[(u64, u64)]| reach.nearest_gap(at, mapped.iter().copied());
    // Between two mappings, with a page free on both sides, the nearer side first.
    let code = (CODE - 0x20_0000, CODE + 0x30_0000);
    assert_eq!(near(&[code]), Some(code.0 - 0x1000 - AREA_LEN));
    assert_eq!(near(&[(code.0 - 0x1000, code.0), code]), Some(code.0 - 0x2000 - AREA_LEN));
    let tight = AREA_LEN + 0x1000;
    assert_eq!(near(&[(0x1000, code.0 - tight), code]), Some(code.1 + 0x1000));
    assert_eq!(near(&[(0x1000, code.0 - tight - 0x1000), code]), Some(code.0 - 0x1000 - AREA_LEN));
    // Everything within reach is taken.
    assert_eq!(near(&[(CODE - 0x9000_0000, CODE + 0x9000_0000)]), None);
    // Only the far end is free, and it can be linked to.
    let place = near(&[(CODE - 0x9000_0000, CODE + 0x7000_0000)]).unwrap();
    assert!(reach.contains(place, AREA_LEN));
    assert!(site(0).link(place + AREA_LEN - STUB_LEN as u64, 0).is_ok());
    // Page 0 and what lies next to it are never used.
    let low = Built::new(0x40_0000, &hex("b8 01 00 00 00"), &hex("c3"));
    let reach = plan_in(&low.code(), low.site, &|_| false).unwrap().reach();
    assert_eq!(reach.nearest_gap(low.site, [(0x11000, 0x1_0000_0000)].into_iter()), None);
    assert!(reach.start >= 0x1_0000);
}

#[test]
fn refused_sites_are_remembered_until_their_code_goes() {
    let mut refused = RefusedSites::<512>::new();
    let sites: Vec<u64> = (0..200).map(|n| CODE + n * 0x135).collect();
    for site in &sites {
        assert!(!refused.contains(*site));
        refused.insert(*site);
        refused.insert(*site);
        assert!(refused.contains(*site));
    }
    let kept = sites.iter().filter(|site| refused.contains(**site)).count();
    assert!(kept >= 180, "{kept} of 200");
    refused.drop_range(CODE..CODE + 100 * 0x135);
    assert_eq!(sites[..100].iter().filter(|site| refused.contains(**site)).count(), 0);
    assert!(sites[100..].iter().filter(|site| refused.contains(**site)).count() >= 80);
    assert!(!refused.contains(0));
}
