//! One run of a program that measures itself and leaves its figures in a file.

use crate::conditions::Conditions;
use crate::failure::{Failure, Outcome};
use crate::launch::{Launch, Side, Streams};
use crate::pipe;
use crate::user::User;
use crate::workshop::Workshop;
use std::ffi::OsString;
use std::process::Stdio;

/// For the price of a commit: each output has one of its own.
pub const EACH: &[&str] = &["--commit", "each"];

/// A program and its arguments around the name of the file of results.
pub struct Trial {
    pub user: User,
    /// Arguments before the file's name: at least the program.
    pub before: Vec<OsString>,
    /// Arguments after it.
    pub after: Vec<OsString>,
    /// How many figures it leaves.
    pub figures: usize,
}

impl Trial {
    /// Runs it to its end. The figures are the last words of the lines of its file, as they stand there.
    pub fn run(&self, workshop: &Workshop, side: Side) -> Outcome<(Vec<f64>, Conditions)> {
        let result = workshop.work(self.user).join("result");
        // Left by the run before.
        let _ = std::fs::remove_file(&result);
        let (reader, output) = pipe::roomy()?;
        let argv: Vec<_> = [&self.before[..], &[result.clone().into()], &self.after[..]].concat();
        let name = argv[0].to_string_lossy().into_owned();
        let launch = Launch { workshop, user: self.user, side, argv };
        let mut running = launch.start(Streams { input: Stdio::null(), output, errors: Stdio::piped() })?;
        let text = running.wait_for_file(&result)?;
        let conditions = running.finish()?;
        drop(reader);
        let figures: Vec<f64> = text.lines().filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
        match figures.len() == self.figures {
            true => Ok((figures, conditions)),
            false => Err(Failure::Unreadable(name, text)),
        }
    }

    /// One run of each side, in the order of the round: native and protected figures, circumstances of the latter. Protected
    /// as `outlast run` does it, with `options`.
    pub fn pair(
        &self,
        round: usize,
        workshop: &Workshop,
        options: &[&str],
    ) -> Outcome<(Vec<f64>, Vec<f64>, Conditions)> {
        let ours = |workshop| self.run(workshop, Side::Protected(options));
        let theirs = |workshop| self.run(workshop, Side::Native);
        let ((native, _), (protected, conditions)) = match round % 2 {
            0 => (theirs(workshop)?, ours(workshop)?),
            _ => {
                let first = ours(workshop)?;
                (theirs(workshop)?, first)
            }
        };
        Ok((native, protected, conditions))
    }
}
