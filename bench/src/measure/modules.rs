//! What it takes to ask a module: from the pin's event to the module's command, through the dispatcher and confined, as a supervisor
//! does at a death.

use crate::failure::{Failure, Outcome};
use crate::measurement::{Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::workshop::Workshop;
use outlast_pins::{Protection, Wishes};
use outlast_supervisor::decision::{Death, Decides};
use outlast_supervisor::end::End;
use outlast_supervisor::options::Options;
use std::hint::black_box;
use std::time::Instant;

pub struct Modules;

const ID: &str = "module-decides";
const DEATHS: u32 = 20_000;

impl Measurement for Modules {
    fn name(&self) -> String {
        "modules".into()
    }

    fn promises(&self) -> Vec<Promise> {
        let what = "an event told to a module, and its command taken";
        vec![Promise {
            id: ID.into(),
            what: what.into(),
            unit: Unit::Microseconds,
            relation: Relation::Whole,
            limit: 2.0,
        }]
    }

    fn rounds(&self) -> usize {
        9
    }

    fn round(&mut self, _number: usize, _workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let mut options = Options::default();
        let (wishes, modules) = (Wishes::of(&options), outlast_modules::all());
        let protection = Protection::new("it", &wishes, &mut options, &modules, &[]);
        let mut protection = protection.map_err(|failure| Failure::NotHere(failure.to_string()))?;
        protection.begin();
        let death = Death::plain(End::Killed(libc::SIGKILL).into());
        let began = Instant::now();
        for restored in 0..DEATHS {
            black_box(protection.died(&Death { restored, ..death }));
        }
        collected.add(ID, None, began.elapsed().as_secs_f64() * 1e6 / f64::from(DEATHS));
        Ok(())
    }
}
