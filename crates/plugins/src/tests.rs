//! Components can ask for all that pins offer, and be told of all that they raise.

use crate::bindings::outlast::module::types as wit;
use crate::{commands, events};
use outlast_core::{Event, Interface, Payload};
use outlast_interfaces::{peri, pmc, proc, sysc, PINS};
use std::collections::BTreeSet;
use std::time::Duration;

/// Those that components know in this version of the interface.
fn pins() -> impl Iterator<Item = &'static Interface> {
    let known = [proc::NAME, sysc::NAME, peri::NAME, pmc::NAME];
    PINS.into_iter().filter(move |pin| known.contains(&pin.name))
}

#[test]
fn every_operation_of_every_pin_can_be_asked_for() {
    use wit::Command as C;
    let program = || "it".to_string();
    let cause = || wit::Cause::Signal(11);
    let hang = wit::Hang { thread: 1, section: 2, has_moved: true, why: wit::Stays::Told("why".into()) };
    let all = [
        C::ProcEnd(wit::End::Exited(3)),
        C::ProcRespawn(wit::Respawn { signal: 9, after: 1 }),
        C::ProcStartAgain(9),
        C::ProcGoBack(cause()),
        C::ProcGoBackTo(wit::Step { generation: 7, surroundings: wit::Surroundings::Room }),
        C::ProcGiveUp(cause()),
        C::ProcFlag(hang),
        C::ProcStarves(wit::Starvation { thread: 1, section: 2, could_run: true, waited: 3 }),
        C::ProcAlert(wit::Storm { recoveries: 5, within: 60 }),
        C::ProcWarn(wit::Leak { of: wit::Resource::Memory, from: 1, to: 2, within: 3, limit: 4 }),
        C::ProcAskAgain(1),
        C::SyscCommitBefore(wit::CommitBefore { program: program(), calls: wit::Visible::Each }),
        C::PeriCommit(wit::Commit { program: program(), every: 1, sparing: true }),
        C::PeriKeep(wit::Keep { program: program(), every: 1, keep: 2, budget: 3 }),
        C::PmcWatch(wit::Watch { program: program(), every: 1 }),
    ];
    let asked: BTreeSet<&str> = all.into_iter().map(|command| commands::operation("it", command).unwrap().0).collect();
    let offered: BTreeSet<&str> = pins().flat_map(|pin| pin.operations.iter().map(|o| o.name)).collect();
    assert_eq!(asked, offered);
}

#[test]
fn every_event_of_every_pin_can_be_subscribed_to_and_told() {
    use wit::Subject as S;
    let all = [
        (S::ProcDied, Payload::of(&proc::Death::plain(proc::End::Killed(9)))),
        (S::ProcStuck, Payload::of(&proc::Stuck { cause: proc::Cause::Signal(11), instruction: 1, kept: vec![1, 2] })),
        (S::ProcRefused, Ok(Payload::NONE)),
        (S::ProcBorn, Ok(Payload::NONE)),
        (S::ProcRecovered, Payload::of(&Duration::from_secs(1))),
        (S::ProcRenewed, Ok(Payload::NONE)),
        (S::PmcCounted, Payload::of(&Vec::<pmc::Count>::new())),
    ];
    let mut subjects = BTreeSet::new();
    for (subject, payload) in all {
        let name = events::name(subject);
        let pin = PINS.iter().find(|pin| pin.events.iter().any(|event| event.name == name)).unwrap().name;
        let event = Event { pin, name, program: Some("it".into()), payload: payload.unwrap() };
        let told = events::told(&event).unwrap().unwrap_or_else(|| panic!("{name} is not told"));
        assert_eq!(told.program.as_deref(), Some("it"));
        subjects.insert(name);
    }
    let raised: BTreeSet<&str> = pins().flat_map(|pin| pin.events.iter().map(|e| e.name)).collect();
    assert_eq!(subjects, raised);
}

#[test]
fn what_is_said_of_a_death_arrives_as_it_was_said() {
    let death = proc::Death {
        by_call: true,
        standing: proc::Standing::Exiting(5),
        seq: u64::MAX,
        unreadable: Some(3),
        hung: Some(proc::Hung { section: 77, has_moved: true }),
        shortage: Some(proc::Shortage { limit: Some(4096) }),
        ..proc::Death::plain(proc::End::Killed(11))
    };
    let event = Event { pin: proc::NAME, name: proc::DIED, program: None, payload: Payload::of(&death).unwrap() };
    let wit::Happening::ProcDied(told) = events::told(&event).unwrap().unwrap().what else { panic!("a death") };
    assert!(matches!((told.end, told.standing), (wit::End::Killed(11), wit::Standing::Exiting(5))));
    assert!(told.by_call && !told.by_engine && told.has_commit && told.seq == u64::MAX && told.unreadable == Some(3));
    assert!(told.hung.is_some_and(|hung| hung.section == 77 && hung.has_moved));
    assert!(told.shortage.is_some_and(|shortage| shortage.limit == Some(4096)));
}
