//! Events of pins as a component is told of them.

use crate::bindings::outlast::module::types as wit;
use crate::looks;
use outlast_core::{Event, Failure};
use outlast_interfaces::{dbr, file, ipc, mem, net, pmc, proc, sect, sig};
use std::time::Duration;

/// The event's name.
pub fn name(subject: wit::Subject) -> &'static str {
    use wit::Subject as S;
    match subject {
        S::ProcDied => proc::DIED,
        S::ProcStuck => proc::STUCK,
        S::ProcRefused => proc::REFUSED,
        S::ProcBorn => proc::BORN,
        S::ProcRecovered => proc::RECOVERED,
        S::ProcRenewed => proc::RENEWED,
        S::PmcCounted => pmc::COUNTED,
        S::SectSeen => sect::SEEN,
        S::SigDelivered => sig::DELIVERED,
        S::SigFatal => sig::FATAL,
        S::MemMeasured => mem::MEASURED,
        S::FileCounted => file::COUNTED,
        S::NetMeasured => net::MEASURED,
        S::IpcMeasured => ipc::MEASURED,
        S::DbrHit => dbr::HIT,
    }
}

/// What it is told. None: of this one no component can have asked to be told.
pub fn told(event: &Event) -> Result<Option<wit::Event>, Failure> {
    use wit::Happening as H;
    let payload = &event.payload;
    let what = match (event.pin, event.name) {
        (proc::NAME, proc::DIED) => H::ProcDied(death(payload.read()?)),
        (proc::NAME, proc::STUCK) => H::ProcStuck(stuck(payload.read()?)),
        (proc::NAME, proc::REFUSED) => H::ProcRefused,
        (proc::NAME, proc::BORN) => H::ProcBorn,
        (proc::NAME, proc::RECOVERED) => H::ProcRecovered(nanoseconds(payload.read()?)),
        (proc::NAME, proc::RENEWED) => H::ProcRenewed,
        (pmc::NAME, pmc::COUNTED) => {
            let counts: Vec<pmc::Count> = payload.read()?;
            H::PmcCounted(counts.into_iter().map(count).collect())
        }
        (sect::NAME, sect::SEEN) => {
            let threads: Vec<sect::Thread> = payload.read()?;
            H::SectSeen(threads.into_iter().map(looks::sections).collect())
        }
        (sig::NAME, sig::DELIVERED) => H::SigDelivered(looks::signalled(payload.read()?)),
        (sig::NAME, sig::FATAL) => H::SigFatal(looks::signalled(payload.read()?)),
        (mem::NAME, mem::MEASURED) => H::MemMeasured(looks::memory(payload.read()?)),
        (file::NAME, file::COUNTED) => H::FileCounted(looks::files(payload.read()?)),
        (net::NAME, net::MEASURED) => H::NetMeasured(looks::connections(payload.read()?)),
        (ipc::NAME, ipc::MEASURED) => H::IpcMeasured(looks::passing(payload.read()?)),
        (dbr::NAME, dbr::HIT) => H::DbrHit(looks::hit(payload.read()?)),
        _ => return Ok(None),
    };
    Ok(Some(wit::Event { program: event.program.clone(), what }))
}

/// More than that is as good as for ever: five centuries.
pub fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos().try_into().unwrap_or(u64::MAX)
}

fn death(death: proc::Death) -> wit::Death {
    let end = match death.end {
        proc::End::Exited(status) => wit::End::Exited(status),
        proc::End::Killed(signal) => wit::End::Killed(signal),
    };
    let standing = match death.standing {
        proc::Standing::Protected => wit::Standing::Protected,
        proc::Standing::Exiting(status) => wit::Standing::Exiting(status),
        proc::Standing::Suspended => wit::Standing::Suspended,
        proc::Standing::GivenUp => wit::Standing::GivenUp,
    };
    wit::Death {
        end,
        by_call: death.by_call,
        by_engine: death.by_engine,
        standing,
        has_commit: death.has_commit,
        seq: death.seq,
        stopping: death.stopping,
        restored: death.restored,
        unreadable: death.unreadable,
        hung: death.hung.map(|proc::Hung { section, has_moved }| wit::Hung { section, has_moved }),
        shortage: death.shortage.map(|proc::Shortage { limit }| wit::Shortage { limit }),
        has_older: death.has_older,
    }
}

fn stuck(proc::Stuck { cause, instruction, kept }: proc::Stuck) -> wit::Stuck {
    let cause = match cause {
        proc::Cause::Signal(signal) => wit::Cause::Signal(signal),
        proc::Cause::Unreadable(reason) => wit::Cause::Unreadable(reason),
    };
    wit::Stuck { cause, instruction, kept }
}

fn count(count: pmc::Count) -> wit::Count {
    let pmc::Count { thread, section, run, spent, slices, activity, wait } = count;
    let activity = match activity {
        pmc::Activity::Runs => wit::Activity::Runs,
        pmc::Activity::Waits => wit::Activity::Waits,
        pmc::Activity::Stuck => wit::Activity::Stuck,
        pmc::Activity::Held => wit::Activity::Held,
    };
    let wait = wait.map(looks::wait);
    let (count, instructions) = (nanoseconds(spent.time), spent.instructions);
    wit::Count { thread, section, run, count, slices, instructions, activity, wait }
}
