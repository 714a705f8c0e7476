//! Programs that wait for a person: what protection adds to a session in which a very fast typist presses ten keys a
//! second (Discount Checking, section 4). Both sides are typed at side by side; their processor time is compared.

use crate::cpu;
use crate::failure::{Failure, Outcome, Tried};
use crate::launch::{Launch, Side, Streams};
use crate::measurement::{sides, Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::running::Running;
use crate::terminal::{lead_session, Terminal};
use crate::user::User;
use crate::workshop::Workshop;
use std::path::Path;
use std::time::{Duration, Instant};

/// A program and the keys that are pressed.
pub struct Interactive {
    name: &'static str,
    keys: String,
}

/// Time from key to key.
const BEAT: Duration = Duration::from_millis(100);

impl Interactive {
    pub fn nvi() -> Self {
        Self { name: "nvi", keys: "iThe quick brown fox jumps over it.\u{1b}0x".into() }
    }

    pub fn sc() -> Self {
        Self { name: "sc", keys: (1..9).map(|i| format!("={i}\rj")).chain(["=@sum(A0:A7)\r".into()]).collect() }
    }

    /// Over the board of the cases' game, to no border.
    pub fn game() -> Self {
        let legs = [('j', 1), ('l', 20), ('j', 5), ('h', 15)];
        Self { name: "game", keys: legs.into_iter().flat_map(|(key, n)| std::iter::repeat_n(key, n)).collect() }
    }

    fn start(&self, workshop: &Workshop, side: Side) -> Outcome<(Running, Terminal)> {
        let program = match self.name {
            "game" => workshop.executable("game"),
            name => Path::new("/usr/bin").join(name),
        };
        if !program.exists() {
            return Err(Failure::NotHere(format!("{} is not installed; run `make install-deps`", program.display())));
        }
        let (terminal, slave) = Terminal::open()?;
        let copy = || slave.try_clone().tried("duplicate the terminal");
        let streams = Streams { input: copy()?.into(), output: copy()?.into(), errors: copy()?.into() };
        let launch = Launch { workshop, user: User::Own, side, argv: vec![program.into()] };
        Ok((launch.start_with(streams, lead_session)?, terminal))
    }
}

impl Measurement for Interactive {
    fn name(&self) -> String {
        format!("{} at a terminal", self.name)
    }

    fn promises(&self) -> Vec<Promise> {
        let id = format!("interactive-{}", self.name);
        let what = format!("{}, ten keys a second, processor time in the session", self.name);
        vec![Promise { id, what, unit: Unit::Percent, relation: Relation::Added, limit: 0.1 }]
    }

    fn rounds(&self) -> usize {
        5
    }

    fn round(&mut self, number: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let mut players = Vec::new();
        for side in sides(number, &[]) {
            let (running, terminal) = self.start(workshop, side)?;
            terminal.settle()?;
            players.push((side, running, terminal));
        }
        let mut total = Vec::new();
        for (_, running, _) in &mut players {
            let all = running.processes()?;
            total.push((all.iter().map(|pid| cpu::used(*pid)).sum::<Duration>(), all));
        }
        let began = Instant::now();
        for key in self.keys.chars() {
            for (_, _, terminal) in &mut players {
                terminal.press(key)?;
                std::thread::sleep(BEAT / 2);
            }
        }
        let took = began.elapsed().as_secs_f64();
        let mut share = [0.0; 2];
        for ((side, running, _), (before, all)) in players.iter_mut().zip(total) {
            let after: Duration = all.iter().map(|pid| cpu::used(*pid)).sum();
            share[usize::from(*side != Side::Native)] = after.saturating_sub(before).as_secs_f64() / took * 100.0;
            if *side != Side::Native {
                collected.conditions(&running.conditions()?);
            }
        }
        collected.add(&self.promises()[0].id, Some(share[0]), share[1]);
        Ok(())
    }
}
