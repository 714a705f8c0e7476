//! Switches one mechanism of outlast off at a time, and demands that a test of the suite fails for it.

mod runner;

use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use outlast_cases::isolation::{seed_of, Order};
use outlast_image::inject::mutant::NAMES;
use runner::Run;

/// Which tests are meant to notice which mutant, the likeliest first.
const HUNTERS: &[(&str, &[&str])] = &[
    ("completion-lookup", &["kill::pipe_counter", "kill::pipe_read", "kill::socket_echo"]),
    ("offset-undo", &["kill::file_read", "kill::descriptors", "kill::files"]),
    ("close-undo", &["kill::descriptors", "kill::python_script"]),
    ("extra-descriptors", &["kill::descriptors", "kill::pair"]),
    ("checksum", &["aimed::heap", "kill::heap", "aimed::pipe_counter"]),
    ("fold-sequence", &["aimed::heap", "kill::heap", "aimed::pipe_counter"]),
    ("vector-state", &["kill::vectors", "kill::vectors_static"]),
    ("signal-replay", &["kill::signals", "aimed::signals"]),
    ("dirty-page", &["kill::heap", "kill::mapper", "kill::python_script"]),
    ("drop", &["kill::privileges", "kill::sandbox"]),
];

/// Blows in each hunting test: some mutants do harm only now and then.
const BLOWS: u32 = 300;

/// A mutant may hang its program: that is noticing too, but it should not take long.
const LIMIT: Duration = Duration::from_secs(90);

fn main() {
    let arguments = Arguments::from_args();
    let run = Arc::new(Run::from_environment());
    let trials = NAMES.iter().map(|mutant| Trial::test(format!("mutant::{mutant}"), hunt(mutant, run.clone())));
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

fn hunt(mutant: &'static str, run: Arc<Run>) -> impl FnOnce() -> Result<(), Failed> {
    move || {
        let hunters = HUNTERS.iter().find(|(name, _)| *name == mutant).map(|(_, hunters)| *hunters);
        for hunter in hunters.ok_or("no test is named to notice this mutant")? {
            let name = format!("{hunter}::async::ring::root");
            let order =
                |mutant| Order { name: &name, seed: seed_of(run.seed, &name), blows: BLOWS, limit: LIMIT, mutant };
            if let Err(failure) = run.workshop.run(&order(Some(mutant))) {
                // A test that fails without the mutant as well has noticed nothing.
                run.workshop.run(&order(None)).map_err(|e| format!("{name} fails without the mutant too: {e}"))?;
                let text = failure.to_string();
                println!("{mutant}: noticed by {name}: {}", text.lines().next().unwrap_or_default());
                return Ok(());
            }
        }
        let again = runner::again("mutants", run.seed, &format!("mutant::{mutant}"));
        Err(format!("no test noticed that {mutant} was switched off; run it again: {again}").into())
    }
}
