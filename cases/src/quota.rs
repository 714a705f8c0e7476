//! How often each case must have died in a thorough run: a case that hardly dies proves little, however many others do.

use crate::attack::Attack;
use crate::suite::{Profile, Test};
use std::collections::BTreeMap;

/// Deaths by SIGKILL of each case, over all attacks and settings.
pub const EACH: u32 = 100;

/// What each case came to.
#[derive(Default)]
pub struct Deaths(BTreeMap<&'static str, u32>);

/// A case that died too seldom.
#[derive(Debug, PartialEq, Eq)]
pub struct Short {
    pub case: &'static str,
    /// None: it did not run.
    pub deaths: Option<u32>,
}

impl Deaths {
    pub fn add(&mut self, case: &'static str, deaths: u32) {
        *self.0.entry(case).or_default() += deaths;
    }

    fn of(&self, case: &str) -> Option<u32> {
        self.0.get(case).copied()
    }

    /// The cases of these tests that somebody kills from outside, and that have died too seldom. `is_whole`: also those that did not run.
    pub fn short(&self, tests: &[Test], is_whole: bool) -> Vec<Short> {
        let mut cases: Vec<&'static str> =
            tests.iter().filter(|test| is_killed(test)).map(|test| test.case.name).collect();
        cases.sort_unstable();
        cases.dedup();
        let short = cases.into_iter().map(|case| Short { case, deaths: self.of(case) });
        short.filter(|one| one.deaths.map_or(is_whole, |deaths| deaths < EACH)).collect()
    }
}

/// Is it hit by SIGKILL alone, again and again?
pub fn is_killed(test: &Test) -> bool {
    test.attack == Attack::Kill && test.blows(Profile::Soak) > 0
}

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.deaths {
            Some(deaths) => write!(f, "{} ({deaths})", self.case),
            None => write!(f, "{} (did not run)", self.case),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite;

    #[test]
    fn a_case_that_died_too_seldom_is_named_and_one_that_did_not_run() {
        let tests = suite::all();
        let mut deaths = Deaths::default();
        for test in &tests {
            deaths.add(test.case.name, EACH);
        }
        assert_eq!(deaths.short(&tests, true), []);
        deaths.0.insert("pipe_counter", EACH - 1);
        deaths.0.remove("heap");
        let told = |whole| deaths.short(&tests, whole).iter().map(Short::to_string).collect::<Vec<_>>();
        assert_eq!(told(true), ["heap (did not run)", "pipe_counter (99)"]);
        assert_eq!(told(false), ["pipe_counter (99)"]);
    }

    #[test]
    fn nobody_demands_deaths_of_a_case_that_ends_by_itself() {
        let short = Deaths::default().short(&suite::all(), true);
        assert!(short.iter().all(|one| one.case != "end_exit"), "{short:?}");
        assert!(short.iter().any(|one| one.case == "pipe_counter"), "{short:?}");
    }
}
