//! Deaths for lack of memory. The kernel's OOM killer kills as anybody does, by SIGKILL; but it counts.

use crate::control_group::{kills_of_the_machine, Groups, Limit, MemoryGroup};
use libc::pid_t;
use std::fmt::{Display, Formatter};

/// Where a process was short of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage(Option<Limit>);

impl Shortage {
    /// What its control groups allow.
    pub fn bytes(&self) -> Option<u64> {
        self.0.as_ref().map(|limit| limit.bytes)
    }
}

impl Display for Shortage {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(Limit { group, bytes }) => write!(f, "control group {group} may use {bytes} bytes"),
            None => write!(f, "the machine has no memory left"),
        }
    }
}

/// The control groups of a process, and whom the OOM killer had killed there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub groups: Option<Groups>,
    memory: Option<MemoryGroup>,
    kills: Option<u64>,
    /// On the whole machine.
    kills_anywhere: Option<u64>,
}

impl Count {
    /// Of a process that lives.
    pub fn of(pid: pid_t) -> Self {
        Self::in_groups(Groups::of(pid))
    }

    /// At the end of the process; `told` are the groups that it died in, if the kernel told.
    pub fn at_end(&self, told: Option<Groups>) -> Self {
        Self::in_groups(told.or_else(|| self.groups.clone()))
    }

    /// Whether it has to be looked, now and then, whether the process is still there: once it is dead it is too late.
    pub fn grows_old(&self) -> bool {
        self.groups.as_ref().is_some_and(Groups::forget)
    }

    fn in_groups(groups: Option<Groups>) -> Self {
        let memory = groups.as_ref().and_then(Groups::memory);
        let kills_anywhere = kills_of_the_machine();
        let kills = memory.as_ref().and_then(MemoryGroup::kills).or(kills_anywhere);
        Self { groups, memory, kills, kills_anywhere }
    }

    /// Why a process died for which this was counted at its end, and `before` at a time when it lived; none if the OOM killer
    /// killed nobody meanwhile. That it killed another one of the same group cannot be told from this; nor, of a process that was
    /// moved to its group since, whether that group's kills came before, if there was one elsewhere meanwhile.
    pub fn shortage_since(&self, before: &Self) -> Option<Shortage> {
        let rose = |now: Option<u64>, then: Option<u64>| now > then && then.is_some();
        let has_killed = match self.memory == before.memory {
            true => rose(self.kills, before.kills),
            false => self.kills > Some(0) && rose(self.kills_anywhere, before.kills_anywhere),
        };
        has_killed.then(|| Shortage(self.memory.as_ref().and_then(MemoryGroup::limit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_count_that_rose_is_a_shortage() {
        let count = |kills| Count { kills, ..Count::default() };
        assert_eq!(count(Some(3)).shortage_since(&count(Some(2))), Some(Shortage(None)));
        assert_eq!(count(Some(3)).shortage_since(&count(Some(3))), None);
        assert_eq!(count(Some(3)).shortage_since(&count(None)), None);
        assert_eq!(count(None).shortage_since(&count(None)), None);
    }

    #[test]
    fn one_that_was_moved_is_told_by_the_machines_count() {
        let group = |name: &str| MemoryGroup::second(name.as_ref(), "/".as_ref());
        let count = |name, kills, anywhere| Count {
            groups: None,
            memory: Some(group(name)),
            kills: Some(kills),
            kills_anywhere: Some(anywhere),
        };
        assert_eq!(count("/b", 1, 5).shortage_since(&count("/a", 0, 4)), Some(Shortage(None)));
        assert_eq!(count("/b", 1, 5).shortage_since(&count("/a", 7, 4)), Some(Shortage(None)));
        assert_eq!(count("/b", 1, 4).shortage_since(&count("/a", 0, 4)), None);
        assert_eq!(count("/b", 0, 5).shortage_since(&count("/a", 0, 4)), None);
    }
}
