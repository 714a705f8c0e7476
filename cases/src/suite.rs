//! Which tests there are: attack × case × setting.

use crate::attack::Attack;
use crate::case::Case;
use crate::cases;
use crate::setting::{Setting, Tracker, User};
use crate::trial::Trial;

/// How thorough a run of the suite is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Minutes: every case once, the telling ones under every setting.
    Test,
    /// An hour: everything under everything, at least ten thousand kills.
    Soak,
}

/// Cases that between them use every mechanism: they run under every setting even in the short profile.
const TELLING: &[&str] = &[
    "pipe_counter",
    "socket_echo",
    "pipe_epoll",
    "socket_inputs",
    "tcp_epoll",
    "files",
    "descriptors",
    "mapper_static",
    "vectors",
    "signals",
    "python_repl",
    "threads",
    "taking_part",
    "limits",
];

/// Cases of which the short profile also makes a run for an ordinary user, whose recovered process has another number.
const RENUMBERED: &[&str] = &[
    "identity",
    "numbers",
    "numbers_alone",
    "java_churn",
    "filters",
    "filters_narrow",
    "filters_bare",
    "filters_exec",
    "filters_exec_narrow",
    "landlock",
    "pidfds",
    "async_input",
    "async_input_realtime",
    "async_input_ioctl",
    "async_input_group",
    "notify",
    "notify_apart",
    "notify_realtime_apart",
    "cpu_clocks",
    "pidfds_threads",
    "queues_handed",
    "objects",
    "undone",
];

/// Cases of which the short profile also makes a run with the tracker that cuts and joins mappings.
const CUT: &[&str] = &[
    "own_memfd",
    "own_named",
    "locked",
    "advice",
    "given_up",
    "jail",
    "rooted",
    "thread_signals",
    "collected_in_increments",
    "printers",
    "births",
    "java_churn",
    "short_reads",
    "asyncio_alone",
];

/// Cases of which the short profile also makes a run in a container, where the engine gets into an image in another way, and whose filter
/// forbids it to have the kernel note which pages are written.
const CONTAINED: &[&str] = &["filters_exec", "filters_exec_narrow", "go_server", "redis", "python_threads"];

/// Cases that end, fail or give up protection by themselves: hitting them from outside would prove nothing more.
const SELF_HARMING: &[&str] = &[
    "stumble",
    "crash_segv",
    "crash_abort",
    "crash_fpe",
    "crash_ill",
    "end_term",
    "end_exit",
    "own_faults_forked",
    "own_faults_handed",
    "own_faults_shared",
    "filters_closed",
    "filters_closed_threads",
    "filters_strict",
    "filters_exec_closed",
    "filters_killed",
];

/// Cases that are attacked with their store on a disk, too: output of each kind, input, files and their names, memory, signals,
/// several threads, a service.
const DURABLE: &[&str] = &[
    "pipe_counter",
    "socket_echo",
    "pipe_epoll",
    "heap",
    "mapper_static",
    "files",
    "descriptors",
    "signals",
    "python_script",
    "threads",
    "printers",
    "redis_aof",
    "go_web",
    "page_server_barrier",
];

/// Of these, what the short profile runs.
const DURABLE_IN_SHORT: &[&str] = &["pipe_counter", "socket_echo", "files", "threads", "file_counter"];

/// Cases for the attacks beside SIGKILL, each busy, so that it commits between two blows.
const OTHERWISE: &[(Attack, &[&str])] = &[
    (
        Attack::Checked,
        &[
            "pipe_counter",
            "heap",
            "own_memfd",
            "own_named",
            "own_closed",
            "mapper",
            "files",
            "python_script",
            "written_pages",
            "unreadable",
            "dense",
            "signals",
            "threads",
            "sleepers",
            "segment",
            "ring_files",
            "ring_server",
            "page_server",
            "page_server_polling",
            "page_server_several",
            "page_server_signal",
            "page_server_moving",
            "page_server_barrier",
            "page_server_kernel",
            "page_server_life",
            "replies",
        ],
    ),
    (
        Attack::Periodic,
        &[
            "pipe_echo",
            "heap",
            "own_memfd",
            "own_named",
            "unreadable",
            "mapper",
            "files",
            "python_script",
            "signals",
            "unwaiting",
            "threads",
            "critical",
            "interval_timers",
            "one_shot",
            "taking_part",
            "taking_part_threads",
            "node_timers",
            "storm",
            "children",
            "go_web",
            "bursts",
            "segment",
            "replies",
            "replies_level",
        ],
    ),
    (Attack::Manual, &["undo"]),
    (Attack::Durable, DURABLE),
    (Attack::Lagging, DURABLE),
    (Attack::LaggingEverything, &["file_counter", "cat_files", "own_memfd_alone", "own_named_alone"]),
    // Nobody is killed: here the crowd of signals alone does harm.
    (Attack::Calm, &["storm"]),
    (
        Attack::Aimed,
        &[
            "pipe_counter",
            "pipe_echo",
            "socket_echo",
            "heap",
            "signals",
            "threads",
            "printers",
            "printers_each",
            "bursts",
            "taking_part",
            "page_server",
            "page_server_barrier",
            "replies",
        ],
    ),
    (
        Attack::Fatal,
        &[
            "pipe_counter",
            "pipe_echo",
            "heap",
            "own_memfd",
            "own_named",
            "own_closed",
            "unreadable",
            "files",
            "vectors",
            "tcp_poll",
            "python_script",
            "threads",
            "taking_part",
            "notify",
            "filters_exec",
            "children",
            "queues",
            "bursts",
            "segment",
            "page_server",
            "page_server_signal",
            "page_server_barrier",
            "page_server_life",
            "replies",
            "replies_counter",
            "replies_blocking",
        ],
    ),
    (
        Attack::Anchor,
        &[
            "jail",
            "children",
            "bursts",
            "pipe_counter",
            "socket_echo",
            "heap",
            "own_closed",
            "own_named_closed",
            "own_named_locked_closed",
            "descriptors",
            "signals",
            "tcp_epoll",
            "threads",
            "redis_aof",
            "notify",
            "notify_apart",
            "filters_exec",
            "pidfds_threads",
            "undone_alone",
            "objects",
            "segment",
            "ring_files",
            "ring_server",
            "page_server_polling",
            "page_server_barrier",
            "replies",
        ],
    ),
    (
        Attack::Together,
        &[
            "pipe_counter",
            "heap",
            "own_memfd",
            "own_named",
            "files",
            "signals",
            "python_script",
            "threads",
            "taking_part",
            "objects",
            "ring_files_alone",
            "undone_alone",
            "page_server",
            "page_server_signal",
            "page_server_barrier",
            "page_server_life",
        ],
    ),
    (
        Attack::Supervisor,
        &[
            "pipe_counter",
            "pipe_echo",
            "heap",
            "files",
            "threads",
            "notify",
            "execs",
            "undone",
            "bursts",
            "filters_exec",
            "children",
            "segment",
            "page_server",
            "replies",
        ],
    ),
    (
        Attack::Everything,
        &[
            "file_counter",
            "cat_files",
            "ring_files_alone",
            "alone",
            "own_memfd_alone",
            "own_closed_alone",
            "own_named_alone",
            "own_named_closed_alone",
            "own_named_locked_closed_alone",
            "own_calls_alone",
            "own_calls_tmpfile_alone",
            "asyncio_alone",
            "node_alone",
            "go_alone",
        ],
    ),
    (Attack::Debugged, &["pipe_counter", "pipe_echo", "heap", "tcp_poll", "threads", "page_server"]),
    (Attack::Stopped, &["bursts", "pipe_counter", "socket_echo", "pipe_poll", "threads", "page_server", "replies"]),
    (Attack::Named, &["pipe_counter", "python_script", "threads"]),
];

/// Cases that measure the window of a system without io_uring: each call is numbered, or its bytes are.
const WINDOW: &[&str] =
    &["pipe_counter", "pipe_read", "socket_send", "socket_recv", "file_counter", "terminal_counter"];

/// One test of the suite.
pub struct Test {
    pub attack: Attack,
    pub case: &'static Case,
    pub setting: Setting,
}

impl Test {
    /// "attack::case::tracker::ring::user".
    pub fn name(&self) -> String {
        format!("{}::{}::{}", self.attack.name(), self.case.name, self.setting)
    }

    /// Whether `profile` runs it.
    pub fn is_in(&self, profile: Profile) -> bool {
        let telling = TELLING.contains(&self.case.name) && self.attack == Attack::Kill;
        let window = self.attack == Attack::Window && self.setting == Setting::PLAIN_WITHOUT_RING;
        // Without a ring, for ordinary users and with the other tracker it takes other ways here and there.
        let manual = self.attack == Attack::Manual;
        let renumbered = RENUMBERED.contains(&self.case.name) && self.setting == Setting::PLAIN_FOR_USERS;
        let is_checked = self.attack == Attack::Checked;
        let cut = CUT.contains(&self.case.name) && self.setting == Setting::PLAIN_ON_ANY_KERNEL && !is_checked;
        let contained = CONTAINED.contains(&self.case.name) && self.setting.user == User::Docker;
        // Root and ordinary users learn of written pages in different ways.
        let checked = is_checked && self.setting.ring && self.setting.tracker == Tracker::Async;
        if profile == Profile::Test && self.attack.stores_on_disk() {
            return self.setting == Setting::PLAIN && DURABLE_IN_SHORT.contains(&self.case.name);
        }
        profile == Profile::Soak
            || self.setting == Setting::PLAIN
            || telling
            || window
            || checked
            || manual
            || renumbered
            || cut
            || contained
    }

    /// Blows that must land in it.
    pub fn blows(&self, profile: Profile) -> u32 {
        match (self.attack, profile) {
            (Attack::Calm, _) => 0,
            (_, Profile::Test) => 25,
            (_, Profile::Soak) => 60,
        }
    }

    /// Why it cannot run here; `None` if it can.
    pub fn obstacle(&self) -> Option<String> {
        let missing = self.case.missing();
        if !missing.is_empty() {
            return Some(format!("needs {} (`make install-deps`)", missing.join(", ")));
        }
        let root = rustix::process::geteuid().is_root();
        (self.setting.user == User::Root && !root).then(|| "needs root".to_string())
    }

    pub fn trial(&self, seed: u64, blows: u32, mutant: Option<String>) -> Trial<'static> {
        Trial { case: self.case, attack: self.attack, setting: self.setting, seed, blows, mutant }
    }
}

/// Every test there is.
pub fn all() -> Vec<Test> {
    let mut tests = Vec::new();
    for case in cases::all() {
        let allowed = |s: &Setting| {
            (s.user == User::Root || !case.root_only)
                && (s.ring || !case.ring_only)
                && (s.user != User::Docker || !case.forbidden_in_docker)
                && (s.tracker == Tracker::Async || !case.needs_kernels_tracker)
        };
        for setting in Setting::all().into_iter().filter(allowed) {
            let attack = if SELF_HARMING.contains(&case.name) { Attack::Calm } else { Attack::Kill };
            tests.push(Test { attack, case, setting });
            if !setting.ring && WINDOW.contains(&case.name) {
                tests.push(Test { attack: Attack::Window, case, setting });
            }
            let more = OTHERWISE.iter().filter(|(_, names)| names.contains(&case.name));
            tests.extend(more.map(|(attack, _)| Test { attack: *attack, case, setting }));
        }
    }
    tests
}

/// The test called `name`.
pub fn find(name: &str) -> Option<Test> {
    all().into_iter().find(|test| test.name() == name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_unique() {
        let tests = all();
        let names: HashSet<String> = tests.iter().map(Test::name).collect();
        assert_eq!(names.len(), tests.len());
    }

    #[test]
    fn every_name_in_the_tables_is_a_case() {
        let known: HashSet<&str> = cases::all().map(|case| case.name).collect();
        let tables = OTHERWISE.iter().flat_map(|(_, names)| names.iter()).chain(
            [TELLING, WINDOW, SELF_HARMING, RENUMBERED, CUT, CONTAINED, DURABLE, DURABLE_IN_SHORT]
                .into_iter()
                .flatten(),
        );
        let unknown: Vec<_> = tables.filter(|name| !known.contains(**name)).collect();
        assert_eq!(unknown, Vec::<&&str>::new());
    }
}
