//! Which tests there are: attack × case × setting.

use crate::attack::Attack;
use crate::case::Case;
use crate::cases;
use crate::setting::{Setting, User};
use crate::trial::Trial;

/// How thorough a run of the suite is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Minutes: every case once, the telling ones under every setting.
    Test,
    /// An hour: everything under everything, at least ten thousand kills.
    Soak,
}

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
    pub fn is_in(&self, _profile: Profile) -> bool {
        true
    }

    /// Blows that must land in it.
    pub fn blows(&self, profile: Profile) -> u32 {
        match (self.attack, profile) {
            (Attack::Calm, _) => 0,
            (_, Profile::Test) => 12,
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
    for case in cases::ALL {
        for setting in Setting::all() {
            tests.push(Test { attack: Attack::Kill, case, setting });
        }
    }
    tests
}

/// The test called `name`.
pub fn find(name: &str) -> Option<Test> {
    all().into_iter().find(|test| test.name() == name)
}
