//! What does not hold yet, test by test: said aloud by every run of the short profile, and run by the thorough one.

use crate::attack::Attack;
use crate::suite::Test;

/// Cases that fail, always or often, under one attack; and why.
const CASES: &[(Attack, &str, &str)] = &[];

/// Why `test` is known to fail; `None` if it must pass.
pub fn of(test: &Test) -> Option<&'static str> {
    let gap = CASES.iter().find(|(attack, case, _)| *attack == test.attack && *case == test.case.name);
    gap.map(|(_, _, why)| *why)
}
