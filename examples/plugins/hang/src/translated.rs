//! What the component is told and tells, in the types that the detector has.

use crate::outlast::module::{looks, types as wit};
use outlast_interfaces::{pmc, proc};
use std::time::Duration;

pub fn count(count: &wit::Count) -> pmc::Count {
    let lock = |lock| match lock {
        looks::Lock::Mutex => pmc::Lock::Mutex,
        looks::Lock::ReadWriteLock => pmc::Lock::ReadWriteLock,
    };
    let wait = count.wait.map(|wait| pmc::Wait { lock: lock(wait.lock), at: wait.at, owner: wait.owner });
    let activity = match count.activity {
        wit::Activity::Runs => pmc::Activity::Runs,
        wit::Activity::Waits => pmc::Activity::Waits,
        wit::Activity::Stuck => pmc::Activity::Stuck,
        wit::Activity::Held => pmc::Activity::Held,
    };
    let wit::Count { thread, section, run, count, slices, instructions, .. } = *count;
    let spent = pmc::Spent { time: Duration::from_nanos(count), instructions };
    pmc::Count { thread, section, run, spent, slices, activity, wait }
}

pub fn hang(hang: proc::Hang) -> wit::Hang {
    let proc::Hang { thread, section, has_moved, why } = hang;
    let why = match why {
        proc::Stays::Computes { count, check } => {
            wit::Stays::Computes(wit::Computes { count: count.as_nanos() as u64, check: check.as_nanos() as u64 })
        }
        proc::Stays::Deadlock(cycle) => {
            wit::Stays::Deadlock(cycle.into_iter().map(|(thread, of)| (thread, wait(of))).collect())
        }
        proc::Stays::Told(why) => wit::Stays::Told(why),
        // This component does not ask for sections that have names, and says nothing of any.
        proc::Stays::Lingers { .. } => unreachable!("the pin sect is not in use"),
    };
    wit::Hang { thread, section, has_moved, why }
}

pub fn starvation(starvation: proc::Starvation) -> wit::Starvation {
    let proc::Starvation { thread, section, could_run, waited } = starvation;
    wit::Starvation { thread, section, could_run, waited: waited.as_nanos() as u64 }
}

fn wait(wait: pmc::Wait) -> wit::Wait {
    let lock = match wait.lock {
        pmc::Lock::Mutex => looks::Lock::Mutex,
        pmc::Lock::ReadWriteLock => looks::Lock::ReadWriteLock,
    };
    wit::Wait { lock, at: wait.at, owner: wait.owner }
}
