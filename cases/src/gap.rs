//! What does not hold yet, test by test: said aloud by every run of the short profile, and run by the thorough one.

use crate::attack::Attack;
use crate::suite::Test;

/// Cases that fail, always or often, under one attack; and why.
const CASES: &[(Attack, &str, &str)] = &[
    (Attack::Calm, "stumble", "a rollback in place reports a lost mapping that is there"),
    (Attack::Kill, "identity_limits", "the engine's descriptors lie above a limit that the program lowered"),
    (Attack::Kill, "bash_interactive", "the last screen of a shell that ends on a terminal may be missing"),
    (Attack::Kill, "wrapped_counter", "a program killed within execve may go on unprotected"),
    (Attack::Kill, "game_resized", "a SIGWINCH that comes while the program is dead is lost"),
    (Attack::Kill, "python_path", "a program killed within execve may go on unprotected"),
    (Attack::Anchor, "descriptors", "an offset moved just before the anchor's death may come back wrong"),
];

/// Attacks that are not answered yet; and why.
const ATTACKS: &[(Attack, &str)] = &[
    (Attack::Supervisor, "the next supervisor may come too late for a program that dies meanwhile"),
    (Attack::Everything, "output that a cold resume makes after everything died may be missing"),
];

/// Why `test` is known to fail; `None` if it must pass.
pub fn of(test: &Test) -> Option<&'static str> {
    let attack = ATTACKS.iter().find(|(attack, _)| *attack == test.attack).map(|(_, why)| *why);
    let case = CASES.iter().find(|(attack, case, _)| *attack == test.attack && *case == test.case.name);
    attack.or(case.map(|(_, _, why)| *why))
}
