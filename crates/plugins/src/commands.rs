//! Commands of a component as pins take them. What they answer is in [`crate::answers`].

use crate::bindings::outlast::module::{looks, types as wit};
use crate::host::legible;
use outlast_core::{Failure, Payload};
use outlast_interfaces::watch::Watch;
use outlast_interfaces::{dbr, file, ipc, mem, net, peri, pmc, proc, sect, sig, sysc};
use std::time::Duration;

/// No deadlock is told of that has more threads.
const MOST_WAIT: usize = 256;

/// The operation's name, and what goes with it, of a command of this module.
pub fn operation(module: &str, command: wit::Command) -> Result<(&'static str, Payload), Failure> {
    use wit::Command as C;
    Ok(match command {
        C::ProcEnd(end) => (proc::END, Payload::of(&self::end(end))?),
        C::ProcRespawn(wit::Respawn { signal, after }) => {
            (proc::RESPAWN, Payload::of(&proc::Respawn { signal, after: Duration::from_nanos(after) })?)
        }
        C::ProcStartAgain(signal) => (proc::START_AGAIN, Payload::of(&signal)?),
        C::ProcGoBack(cause) => (proc::GO_BACK, Payload::of(&self::cause(cause))?),
        C::ProcGoBackTo(wit::Step { generation, surroundings }) => {
            let surroundings = match surroundings {
                wit::Surroundings::Same => proc::Surroundings::Same,
                wit::Surroundings::Room => proc::Surroundings::Room,
                wit::Surroundings::RoomAndDelays => proc::Surroundings::RoomAndDelays,
            };
            (proc::GO_BACK_TO, Payload::of(&proc::Step { generation, surroundings, again: false })?)
        }
        C::ProcGiveUp(cause) => (proc::GIVE_UP, Payload::of(&self::cause(cause))?),
        C::ProcFlag(hang) => (proc::FLAG, Payload::of(&self::hang(hang)?)?),
        C::ProcStarves(wit::Starvation { thread, section, could_run, waited }) => {
            let waited = Duration::from_nanos(waited);
            (proc::STARVES, Payload::of(&proc::Starvation { thread, section, could_run, waited })?)
        }
        C::ProcAlert(wit::Storm { recoveries, within }) => {
            (proc::ALERT, Payload::of(&proc::Storm { recoveries, within: Duration::from_nanos(within) })?)
        }
        C::ProcWarn(wit::Leak { of, from, to, within, limit }) => {
            let of = match of {
                wit::Resource::Descriptors => proc::Resource::Descriptors,
                wit::Resource::Memory => proc::Resource::Memory,
            };
            (proc::WARN, Payload::of(&proc::Leak { of, from, to, within: Duration::from_nanos(within), limit })?)
        }
        C::ProcAskAgain(after) => (proc::ASK_AGAIN, Payload::of(&Duration::from_nanos(after))?),
        C::SyscCommitBefore(wit::CommitBefore { program, calls }) => {
            let calls = match calls {
                wit::Visible::Together => sysc::Visible::Together,
                wit::Visible::Each => sysc::Visible::Each,
            };
            (sysc::COMMIT_BEFORE, Payload::of(&sysc::CommitBefore { program, calls })?)
        }
        C::SyscLogReplies(program) => (sysc::LOG_REPLIES, Payload::of(&sysc::LogReplies { program })?),
        C::PeriCommit(wit::Commit { program, every, sparing }) => {
            (peri::COMMIT, Payload::of(&peri::Commit { program, every: Duration::from_nanos(every), sparing })?)
        }
        C::PeriKeep(wit::Keep { program, every, keep, budget }) => {
            let (every, keep) = (Duration::from_nanos(every), Duration::from_nanos(keep));
            (peri::KEEP, Payload::of(&peri::Keep { program, every, keep, budget })?)
        }
        C::PmcWatch(wit::Watch { program, every }) => {
            (pmc::WATCH, Payload::of(&pmc::Watch { program, by: module.into(), every: Duration::from_nanos(every) })?)
        }
        C::SectWatch(watch) => (sect::WATCH, Payload::of(&self::watch(module, watch))?),
        C::SigSend(wit::Sending { program, thread, signal }) => {
            (sig::SEND, Payload::of(&sig::Send { program, thread, signal })?)
        }
        C::SigMasks(program) => (sig::MASKS, Payload::of(&program)?),
        C::MemWatch(watch) => (mem::WATCH, Payload::of(&self::watch(module, watch))?),
        C::MemAccount(program) => (mem::ACCOUNT, Payload::of(&program)?),
        C::MemCopy(range) => (mem::COPY, Payload::of(&self::range(range))?),
        C::MemPages(range) => (mem::PAGES, Payload::of(&self::range(range))?),
        C::FileWatch(watch) => (file::WATCH, Payload::of(&self::watch(module, watch))?),
        C::FileList(wit::Listing { program, lowest, most }) => {
            (file::LIST, Payload::of(&file::List { program, from: lowest, most })?)
        }
        C::NetWatch(watch) => (net::WATCH, Payload::of(&self::watch(module, watch))?),
        C::NetList(program) => (net::LIST, Payload::of(&program)?),
        C::IpcWatch(watch) => (ipc::WATCH, Payload::of(&self::watch(module, watch))?),
        C::IpcList(program) => (ipc::LIST, Payload::of(&program)?),
        C::DbrWatch(breakpoint) => (dbr::WATCH, Payload::of(&self::breakpoint(breakpoint))?),
        C::DbrUnwatch(wit::Unwatch { program, watch }) => {
            (dbr::UNWATCH, Payload::of(&dbr::Unwatch { program, watch })?)
        }
    })
}

fn watch(module: &str, wit::Watch { program, every }: wit::Watch) -> Watch {
    Watch { program, by: module.into(), every: Duration::from_nanos(every) }
}

fn range(wit::Range { program, address, length }: wit::Range) -> mem::Range {
    mem::Range { program, address, length }
}

fn breakpoint(wit::Breakpoint { program, address, length, access, every }: wit::Breakpoint) -> dbr::Watch {
    let access = match access {
        looks::Access::Write => dbr::Access::Write,
        looks::Access::ReadOrWrite => dbr::Access::ReadOrWrite,
        looks::Access::Execute => dbr::Access::Execute,
    };
    dbr::Watch { program, address, length, access, every: Duration::from_nanos(every) }
}

fn end(end: wit::End) -> proc::End {
    match end {
        wit::End::Exited(status) => proc::End::Exited(status),
        wit::End::Killed(signal) => proc::End::Killed(signal),
    }
}

fn cause(cause: wit::Cause) -> proc::Cause {
    match cause {
        wit::Cause::Signal(signal) => proc::Cause::Signal(signal),
        wit::Cause::Unreadable(reason) => proc::Cause::Unreadable(reason),
    }
}

fn hang(wit::Hang { thread, section, has_moved, why }: wit::Hang) -> Result<proc::Hang, Failure> {
    let why = match why {
        wit::Stays::Computes(wit::Computes { count, check }) => {
            proc::Stays::Computes { count: Duration::from_nanos(count), check: Duration::from_nanos(check) }
        }
        wit::Stays::Lingers(wit::Lingers { section, count, check }) => {
            let section = match section {
                looks::Section::Named(address) => sect::Section::Named(address),
                looks::Section::Function(address) => sect::Section::Function(address),
                looks::Section::Symbol(number) => sect::Section::Symbol(number),
            };
            proc::Stays::Lingers { section, count: Duration::from_nanos(count), check: Duration::from_nanos(check) }
        }
        // All of it is told of, in one line.
        wit::Stays::Deadlock(cycle) if cycle.len() > MOST_WAIT => {
            return Err(Failure::Told(format!("no more than {MOST_WAIT} threads wait for each other")))
        }
        wit::Stays::Deadlock(cycle) => {
            proc::Stays::Deadlock(cycle.into_iter().map(|(thread, wait)| (thread, self::wait(wait))).collect())
        }
        wit::Stays::Told(why) => proc::Stays::Told(legible(&why)),
    };
    Ok(proc::Hang { thread, section, has_moved, why })
}

fn wait(wit::Wait { lock, at, owner }: wit::Wait) -> pmc::Wait {
    let lock = match lock {
        wit::Lock::Mutex => pmc::Lock::Mutex,
        wit::Lock::ReadWriteLock => pmc::Lock::ReadWriteLock,
    };
    pmc::Wait { lock, at, owner }
}
