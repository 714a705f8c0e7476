//! Components can ask for all that pins offer, and be told of all that they raise.

use crate::answers;
use crate::bindings::outlast::module::{looks, types as wit};
use crate::{commands, events};
use outlast_core::{Event, Interface, Payload};
use outlast_interfaces::watch::Look;
use outlast_interfaces::{dbr, file, ipc, mem, net, pmc, proc, schl, sect, sig, PINS};
use std::collections::BTreeSet;
use std::time::Duration;

/// Those that a program's own supervisor has. The others are the daemon's, which has no components.
fn pins() -> impl Iterator<Item = &'static Interface> {
    PINS.into_iter().filter(|pin| pin.name != schl::NAME)
}

#[test]
fn every_operation_of_every_pin_can_be_asked_for() {
    use wit::Command as C;
    let program = || "it".to_string();
    let cause = || wit::Cause::Signal(11);
    let hang = wit::Hang { thread: 1, section: 2, has_moved: true, why: wit::Stays::Told("why".into()) };
    let watch = || wit::Watch { program: program(), every: 1 };
    let range = || wit::Range { program: program(), address: 4096, length: 8 };
    let access = looks::Access::Write;
    let breakpoint = wit::Breakpoint { program: program(), address: 8, length: 8, access, every: 1 };
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
        C::SyscLogReplies(program()),
        C::PeriCommit(wit::Commit { program: program(), every: 1, sparing: true }),
        C::PeriKeep(wit::Keep { program: program(), every: 1, keep: 2, budget: 3 }),
        C::PmcWatch(watch()),
        C::SectWatch(watch()),
        C::SigSend(wit::Sending { program: program(), thread: Some(2), signal: 10 }),
        C::SigMasks(program()),
        C::MemWatch(watch()),
        C::MemAccount(program()),
        C::MemCopy(range()),
        C::MemPages(range()),
        C::FileWatch(watch()),
        C::FileList(wit::Listing { program: program(), lowest: 3, most: 4 }),
        C::NetWatch(watch()),
        C::NetList(program()),
        C::IpcWatch(watch()),
        C::IpcList(program()),
        C::DbrWatch(breakpoint),
        C::DbrUnwatch(wit::Unwatch { program: program(), watch: 1 }),
    ];
    let mut asked: Vec<&str> = all.into_iter().map(|command| commands::operation("it", command).unwrap().0).collect();
    let mut offered: Vec<&str> = pins().flat_map(|pin| pin.operations.iter().map(|o| o.name)).collect();
    asked.sort_unstable();
    offered.sort_unstable();
    assert_eq!(asked, offered);
}

#[test]
fn a_deadlock_of_more_threads_than_anybody_reads_of_is_refused() {
    let wait = wit::Wait { lock: looks::Lock::Mutex, at: 8, owner: 1 };
    let of = |threads: usize| {
        let why = wit::Stays::Deadlock(vec![(1, wait); threads]);
        let hang = wit::Hang { thread: 1, section: 2, has_moved: true, why };
        commands::operation("it", wit::Command::ProcFlag(hang)).is_ok()
    };
    assert_eq!((of(256), of(257), of(1 << 20)), (true, false, false));
}

#[test]
fn every_event_of_every_pin_can_be_subscribed_to_and_told() {
    use wit::Subject as S;
    let look = Look { at: Duration::from_secs(1), process: 2, life: 3 };
    let signalled = sig::Told { signal: 11, at: Duration::from_secs(1), survived: true };
    let (resident, anonymous) = (1, 2);
    let memory = mem::Measured { look, resident, anonymous, files: 3, shared: 4, swapped: 5, limit: Some(6) };
    let files = file::Counted { look, open: 1, files: 2, pipes: 3, sockets: 4, others: 5, limit: 6 };
    let states = vec![(net::State::Listening, 1)];
    let connections = net::Measured { look, states, unacknowledged: 1, unread: 2, traffic: None };
    let all = [
        (S::ProcDied, Payload::of(&proc::Death::plain(proc::End::Killed(9)))),
        (S::ProcStuck, Payload::of(&proc::Stuck { cause: proc::Cause::Signal(11), instruction: 1, kept: vec![1, 2] })),
        (S::ProcRefused, Ok(Payload::NONE)),
        (S::ProcBorn, Ok(Payload::NONE)),
        (S::ProcRecovered, Payload::of(&Duration::from_secs(1))),
        (S::ProcRenewed, Ok(Payload::NONE)),
        (S::PmcCounted, Payload::of(&Vec::<pmc::Count>::new())),
        (S::SectSeen, Payload::of(&Vec::<sect::Thread>::new())),
        (S::SigDelivered, Payload::of(&signalled)),
        (S::SigFatal, Payload::of(&signalled)),
        (S::MemMeasured, Payload::of(&memory)),
        (S::FileCounted, Payload::of(&files)),
        (S::NetMeasured, Payload::of(&connections)),
        (S::IpcMeasured, Payload::of(&ipc::Measured { look, pipes: vec![pipe()], waits: vec![] })),
        (S::DbrHit, Payload::of(&dbr::Hit { watch: 1, process: 2, count: 3, total: 4 })),
    ];
    let mut subjects = BTreeSet::new();
    for (subject, payload) in all {
        let name = events::name(subject);
        // Two pins have an event of the same name: it is that of which nothing was told yet.
        let of = |pin: &&&Interface| pin.events.iter().any(|e| e.name == name) && !subjects.contains(&(pin.name, name));
        let pin = PINS.iter().find(of).unwrap().name;
        let event = Event { pin, name, program: Some("it".into()), payload: payload.unwrap() };
        let told = events::told(&event).unwrap().unwrap_or_else(|| panic!("{name} is not told"));
        assert_eq!(told.program.as_deref(), Some("it"));
        subjects.insert((pin, name));
    }
    let raised: BTreeSet<_> = pins().flat_map(|pin| pin.events.iter().map(|e| (pin.name, e.name))).collect();
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

fn pipe() -> ipc::Pipe {
    ipc::Pipe { descriptor: 3, inode: 77, writes: true, fill: 5, size: 65536 }
}

#[test]
fn what_pins_answer_arrives_as_they_said_it() {
    let program = || "it".to_string();
    let answer = |command: &wit::Command, result: Payload| answers::of(command)(&result).unwrap();
    let pipes = answer(&wit::Command::IpcList(program()), Payload::of(&[pipe()].to_vec()).unwrap());
    assert!(matches!(pipes, wit::Answer::Pipes(all) if all.len() == 1 && all[0].inode == 77 && all[0].writes));
    let range = wit::Range { program: program(), address: 0, length: 3 };
    let bytes = answer(&wit::Command::MemCopy(range.clone()), Payload::of(&vec![1_u8, 2, 3]).unwrap());
    assert!(matches!(bytes, wit::Answer::Bytes(bytes) if bytes == [1, 2, 3]));
    let present = mem::Page::Present { exclusive: true, file: false };
    let pages = answer(&wit::Command::MemPages(range), Payload::of(&vec![mem::Page::Absent, present]).unwrap());
    let wit::Answer::Pages(pages) = pages else { panic!("pages") };
    assert!(matches!(pages[..], [looks::Page::Absent, looks::Page::Present(page)] if page.exclusive && !page.file));
    let local = "[fe80::1]:80".parse().unwrap();
    let remote = "192.0.2.7:443".parse().unwrap();
    let state = net::State::Established;
    let one = net::Connection { inode: 1, state, local, remote, unacknowledged: 2, unread: 3, traffic: None };
    let connections = answer(&wit::Command::NetList(program()), Payload::of(&vec![one]).unwrap());
    let wit::Answer::Connections(connections) = connections else { panic!("connections") };
    assert!(matches!(connections[0].local.ip, looks::IpAddress::V6((0xfe80, 0, 0, 0, 0, 0, 0, 1))));
    assert!(matches!(connections[0].remote.ip, looks::IpAddress::V4((192, 0, 2, 7))));
    assert!(matches!(answer(&wit::Command::ProcAskAgain(1), Payload::NONE), wit::Answer::Nothing));
}
