//! What it takes to tell a module of threads: the detector of hangs that is compiled in, and the component made of the same source, in turn.

use crate::failure::{Failure, Outcome, Tried};
use crate::measurement::{Collected, Measurement};
use crate::promise::{Promise, Relation, Unit};
use crate::workshop::Workshop;
use outlast_interfaces::pmc::{Activity, Count, Spent};
use outlast_interfaces::{hang, plugin};
use outlast_pins::{Protection, Wishes};
use outlast_plugins::{manifest, Compiled};
use outlast_supervisor::decision::Decides;
use outlast_supervisor::options::Options;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

pub struct Plugins;

const BUILT_IN: &str = "event-built-in";
const WASM: &str = "event-wasm";
const EVENTS: u32 = 20_000;
/// What the component is called beside the one that is compiled in.
const NAME: &str = "hang-wasm";

impl Measurement for Plugins {
    fn name(&self) -> String {
        "plugins".into()
    }

    fn promises(&self) -> Vec<Promise> {
        let promise = |id, what, limit| Promise::new(id, what, Unit::Microseconds, Relation::Whole, limit);
        vec![
            promise(BUILT_IN, "a look at 4 threads told to a detector that is compiled in", 2.0),
            promise(WASM, "the same told to a component made of its source", 5.0),
        ]
    }

    fn rounds(&self) -> usize {
        9
    }

    fn round(&mut self, _number: usize, _workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let file = component()?;
        let bytes = std::fs::read(&file).tried_on(&file)?;
        let compiled = Compiled::of(&bytes).map_err(|e| Failure::NotHere(e.to_string()))?;
        let built_in = event(&Wishes { hang: Some(hang::Settings::with_limit(None)), ..wishes() }, &[])?;
        let plugin = plugin::Wish { name: NAME.into(), file, settings: String::new() };
        let wasm = event(&Wishes { plugins: vec![plugin], ..wishes() }, &[manifest(NAME, "", compiled)])?;
        collected.add(BUILT_IN, None, built_in);
        collected.add(WASM, Some(built_in), wasm);
        Ok(())
    }
}

fn wishes() -> Wishes {
    Wishes { has_begun: false, ..Wishes::of(&Options::default()) }
}

/// Microseconds from a look at the threads to the supervisor's going on.
fn event(wishes: &Wishes, more: &[outlast_core::Manifest]) -> Outcome<f64> {
    let modules = [&outlast_modules::all()[..], more].concat();
    let protection = Protection::new("it", wishes, &mut Options::default(), &modules, &[]);
    let mut protection = protection.map_err(|failure| Failure::NotHere(failure.to_string()))?;
    protection.begin();
    let mut counts = [1, 2, 3, 4].map(|thread| Count {
        thread,
        section: 7,
        run: 0,
        spent: Spent::default(),
        slices: 0,
        activity: Activity::Runs,
        wait: None,
    });
    let began = Instant::now();
    for _ in 0..EVENTS {
        for count in &mut counts {
            count.run += 1;
            count.spent.time += Duration::from_micros(10);
        }
        black_box(protection.counted(&counts, &[]));
    }
    let took = began.elapsed().as_secs_f64() * 1e6 / f64::from(EVENTS);
    match protection.failures().first() {
        Some(failure) => Err(Failure::NotHere(failure.clone())),
        None => Ok(took),
    }
}

fn component() -> Outcome<PathBuf> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/plugins");
    let built = Command::new(examples.join("build")).status().tried("build the examples of plug-ins")?;
    match built.success() {
        true => Ok(examples.join("../../target/plugins/components/hang.wasm")),
        false => Err(Failure::NotHere("the examples of plug-ins are not built; run `make install-deps`".into())),
    }
}
