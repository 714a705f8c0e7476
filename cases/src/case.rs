//! A case: how to start a program, how to drive it, and what it may not be able to keep.

use std::time::Duration;

use outlast_image::degradation::Degradation;

use crate::drive::Drive;
use crate::failure::Outcome;
use crate::room::Room;

/// A program and its arguments.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// An absolute path, or a name to be looked up on the program's `PATH`.
    pub argv: Vec<String>,
    /// Environment beside the fixed one; a `PATH` here replaces it.
    pub env: Vec<(String, String)>,
}

impl Program {
    pub fn new(argv: &[&str]) -> Program {
        Program { argv: argv.iter().map(|s| s.to_string()).collect(), env: Vec::new() }
    }

    pub fn with_env(mut self, name: &str, value: &str) -> Program {
        self.env.push((name.to_string(), value.to_string()));
        self
    }
}

/// What a case may use when it starts its program.
pub struct Stage<'a> {
    pub room: &'a Room,
    /// A TCP port that no other test uses.
    pub port: u16,
    /// Whether this is the run that nobody harms, whose view is the measure.
    pub unharmed: bool,
}

/// One program that must survive.
pub struct Case {
    /// Unique; part of the test's name.
    pub name: &'static str,
    /// Files that must exist for the case to run; otherwise it is skipped, and the run says so.
    pub needs: &'static [&'static str],
    /// Prepares the room and says what to run.
    pub start: fn(&Stage) -> Outcome<Program>,
    /// How it is talked to.
    pub drive: fn(&Stage) -> Drive,
    /// Shortest and longest pause between kills.
    pub pace: (Duration, Duration),
    /// Degradations it may report.
    pub degradations: &'static [Degradation],
    /// Whether it fails by itself, so that a run without a recovery proves nothing.
    pub stumbles: bool,
    /// Whether it is given up in the end, which outlast says in one line on standard error.
    pub given_up: bool,
    /// Whether it has to start with root's capabilities.
    pub root_only: bool,
    /// It makes calls that are exactly once on io_uring only.
    pub ring_only: bool,
    /// The program makes a ring or a userfaultfd of its own, which a container's filter forbids it.
    pub forbidden_in_docker: bool,
    /// Options of `outlast run` that it needs, besides those of the attack.
    pub options: &'static [&'static str],
    /// It serves page faults of its own, or has bases of GS of its own, which are kept only where the kernel itself tracks written pages.
    pub needs_kernels_tracker: bool,
}

/// The hammer's pace for programs that are always busy.
pub const TIGHT: (Duration, Duration) = (Duration::from_micros(500), Duration::from_micros(6_000));
/// For programs that a person talks to, so that kills spread over the whole conversation.
pub const SPREAD: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(10));
/// For programs with much memory, whose recovery alone takes longer than the tight pace.
pub const WIDE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(120));

impl Case {
    /// A busy program that needs nothing but this crate's own programs and reports nothing.
    pub const fn new(name: &'static str, start: fn(&Stage) -> Outcome<Program>, drive: fn(&Stage) -> Drive) -> Case {
        Case {
            name,
            needs: &[],
            start,
            drive,
            pace: TIGHT,
            degradations: &[],
            stumbles: false,
            given_up: false,
            root_only: false,
            ring_only: false,
            forbidden_in_docker: false,
            options: &[],
            needs_kernels_tracker: false,
        }
    }

    /// Files without which the case is skipped.
    pub const fn needs(mut self, needs: &'static [&'static str]) -> Case {
        self.needs = needs;
        self
    }

    pub const fn pace(mut self, pace: (Duration, Duration)) -> Case {
        self.pace = pace;
        self
    }

    /// Degradations the case may report beside those of its setting.
    pub const fn may_report(mut self, degradations: &'static [Degradation]) -> Case {
        self.degradations = degradations;
        self
    }

    pub const fn stumbles(mut self) -> Case {
        self.stumbles = true;
        self
    }

    /// Fails by itself the same way every time.
    pub const fn is_given_up(mut self) -> Case {
        (self.stumbles, self.given_up) = (true, true);
        self
    }

    pub const fn root_only(mut self) -> Case {
        self.root_only = true;
        self
    }

    pub const fn ring_only(mut self) -> Case {
        self.ring_only = true;
        self
    }

    pub const fn forbidden_in_docker(mut self) -> Case {
        self.forbidden_in_docker = true;
        self
    }

    pub const fn with_options(mut self, options: &'static [&'static str]) -> Case {
        self.options = options;
        self
    }

    pub const fn needs_kernels_tracker(mut self) -> Case {
        self.needs_kernels_tracker = true;
        self
    }

    /// What the machine lacks for it.
    pub fn missing(&self) -> Vec<&'static str> {
        self.needs.iter().copied().filter(|path| !std::path::Path::new(path).exists()).collect()
    }
}
