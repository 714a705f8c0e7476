//! What keeping older generations costs a program of a gigabyte that commits without pause, beside the same program without; and
//! what encrypting them costs beside that.

use crate::failure::{Outcome, Tried};
use crate::launch::Side;
use crate::measurement::{Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::trial::{Trial, EACH};
use crate::user::User;
use crate::workshop::Workshop;
use std::os::unix::fs::PermissionsExt;

pub struct Generations;

const TURN: &str = "generations-turn-1gib";
const PAUSE: &str = "generations-pause-1gib";
const ENCRYPTED: &str = "generations-encrypted-1gib";
/// One a second; the program runs for some of them.
const OPTIONS: [&str; 4] = ["--commit", "each", "--generations", "1s:1h:1GiB"];
const SECONDS: u32 = 6;

impl Measurement for Generations {
    fn name(&self) -> String {
        "a generation every second".into()
    }

    fn promises(&self) -> Vec<Promise> {
        vec![
            Promise {
                id: TURN.into(),
                what: "commits of 1 GiB with a generation every second, more than without".into(),
                unit: Unit::Percent,
                relation: Relation::Overhead,
                limit: 25.0,
            },
            Promise {
                id: PAUSE.into(),
                what: "the longest of these commits, more than without".into(),
                unit: Unit::Milliseconds,
                relation: Relation::Added,
                limit: 50.0,
            },
            Promise {
                id: ENCRYPTED.into(),
                what: "commits of 1 GiB with an encrypted generation every second, more than with a plain one".into(),
                unit: Unit::Percent,
                relation: Relation::Overhead,
                limit: 5.0,
            },
        ]
    }

    fn rounds(&self) -> usize {
        5
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let before = vec![workshop.executable("generations").into()];
        let after = ["1024".into(), SECONDS.to_string().into()].to_vec();
        let trial = Trial { user: User::Own, before, after, figures: 2 };
        let key = workshop.put(User::Own, "key", &[7; 32])?;
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).tried_on(&key)?;
        let key = key.to_string_lossy();
        let encrypted = [OPTIONS[0], OPTIONS[1], OPTIONS[2], OPTIONS[3], "--encrypt", &key];
        let sides = [Side::Protected(EACH), Side::Protected(&OPTIONS), Side::Protected(&encrypted)];
        let mut took = [Vec::new(), Vec::new(), Vec::new()];
        for turn in 0..3 {
            let side = (number + turn) % 3;
            let (figures, conditions) = trial.run(workshop, sides[side])?;
            took[side] = figures;
            collected.conditions(&conditions);
        }
        let [without, with, encrypted] = took;
        collected.add(TURN, Some(without[0] / 1e6), with[0] / 1e6);
        collected.add(ENCRYPTED, Some(with[0] / 1e6), encrypted[0] / 1e6);
        collected.add(PAUSE, Some(without[1] / 1e6), with[1] / 1e6);
        Ok(())
    }
}
