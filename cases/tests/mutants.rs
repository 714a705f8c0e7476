//! Switches one mechanism of outlast off at a time, and demands that a test fails for it.
//!
//! Mechanisms of the engine are hunted by tests of the suite, with an engine built for that (`make mutants` does); checks of
//! the store by its own tests, which stop it where no kill of a process can: at a torn write, at a loss of power.

mod runner;

use std::env;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use outlast_cases::isolation::{seed_of, Order};
use outlast_cases::watchdog;
use outlast_image::mutant::Mutant;
use runner::Run;

/// Which tests are meant to notice which mutant, the likeliest first. A name without a setting means the plain one.
const HUNTERS: &[(&str, &[&str])] = &[
    ("output-commit", &["kill::pipe_counter"]),
    ("input-commit", &["kill::pipe_read", "kill::pipe_echo"]),
    ("input-log", &["kill::pipe_read", "kill::socket_inputs"]),
    ("readiness", &["kill::tcp_epoll", "kill::socket_inputs"]),
    ("completion-lookup", &["kill::pipe_counter", "kill::pipe_read"]),
    ("kept-result", &["kill::pipe_read", "kill::socket_echo"]),
    ("note-lookup", &["kill::pipe_read::async::no-ring::root", "kill::pipe_counter::async::no-ring::root"]),
    (
        "progress",
        &[
            "kill::pipe_echo",
            "kill::socket_echo",
            "kill::pipe_echo::mprotect::ring::root",
            "kill::pipe_echo::async::ring::user",
        ],
    ),
    ("append-witness", &["kill::files"]),
    ("offset-undo", &["kill::file_read", "kill::descriptors"]),
    ("content-undo", &["manual::undo"]),
    ("name-undo", &["manual::undo"]),
    ("close-undo", &["kill::descriptors", "kill::python_script"]),
    ("delayed-close", &["kill::descriptors", "kill::python_script"]),
    ("flags-undo", &["kill::descriptors"]),
    ("extra-descriptors", &["kill::descriptors", "kill::pair"]),
    ("epoll-rearm", &["kill::tcp_epoll_edge", "kill::pipe_epoll"]),
    ("one-shot", &["kill::one_shot"]),
    ("vector-state", &["kill::vectors", "kill::vectors_static"]),
    ("pending-signals", &["kill::signals"]),
    ("signal-deferral", &["kill::signals"]),
    ("rollback", &["fatal::heap"]),
    ("timer", &["kill::signals"]),
    ("process-group", &["kill::identity", "kill::identity_terminal"]),
    ("dirty-page", &["kill::heap"]),
    ("hot-page", &["kill::pipe_counter", "kill::heap"]),
    ("listed-fault", &["checked::heap", "kill::heap"]),
    ("drop", &["kill::mapper_static", "kill::mapper"]),
    ("regions", &["kill::mapper"]),
    ("lazy-discard", &["kill::mapper", "kill::mapper_static"]),
    ("kernel-writes", &["kill::file_read::mprotect::ring::root"]),
    ("kept-open", &["kill::go_server::mprotect::ring::root"]),
    ("birth", &["kill::children"]),
    ("thread-contexts", &["kill::threads"]),
    ("thread-stop", &["aimed::threads", "kill::threads"]),
    ("thread-turn", &["kill::threads", "aimed::threads"]),
    ("thread-signals", &["kill::thread_signals"]),
    ("after-recovery", &["kill::taking_part"]),
    ("numbers", &["kill::numbers::async::ring::user", "kill::numbers_alone::async::ring::user"]),
    ("thread-id", &["kill::births"]),
    ("advice", &["kill::advice"]),
    ("open-span", &["kill::dense", "checked::dense"]),
    ("own-faults", &["kill::page_server"]),
    ("brought-zeroes", &["kill::page_server_several"]),
    ("own-protection", &["kill::page_server_barrier"]),
    ("compared", &["kill::page_server_barrier"]),
    ("own-bases", &["kill::segment"]),
    ("heir", &["kill::landlock", "kill::identity"]),
    ("once", &["kill::shut", "kill::again"]),
    ("own-pidfds", &["kill::pidfds"]),
    ("watched-pidfds", &["kill::pidfds_threads", "kill::pidfds"]),
    ("owners", &["kill::async_input", "kill::async_input_ioctl"]),
    ("barriers", &["kill::barriers"]),
    ("call-filters", &["kill::filters"]),
    ("filter-needs", &["calm::filters_closed"]),
    ("handed-filters", &["kill::filters_exec"]),
    ("notifications", &["kill::notify_apart", "kill::notify"]),
    ("entered", &["kill::queues_handed"]),
    ("half-made", &["kill::objects"]),
    ("semaphore-undo", &["together::undone_alone"]),
    ("joined-lookup", &["aimed::printers_each", "kill::printers_each"]),
    ("gathered", &["supervisor::bursts", "anchor::bursts"]),
    ("forked-knocks", &["kill::bursts", "aimed::bursts"]),
    ("replies", &["kill::replies"]),
    ("reply-order", &["kill::replies", "kill::replies_level"]),
    ("own-files", &["kill::own_memfd"]),
    ("mapped-writes", &["kill::own_named"]),
    ("called-changes", &["kill::own_calls"]),
    ("unmapped-changes", &["kill::own_memfd"]),
    ("own-files-anew", &["everything::own_memfd_alone"]),
    ("lent-files", &["kill::own_transfers"]),
];

/// Checks of the store, and which of its tests is meant to notice.
const STORE: &[(&str, &str)] = &[
    ("epoch", "tests::power::a_stale_record_never_counts"),
    ("record-checksum", "tests::damage::one_damaged_bit_never_yields_a_state_nobody_committed"),
    ("sync", "tests::power::an_acknowledged_durable_commit_survives_random_power_losses"),
    ("fold-mark", "tests::damage::one_damaged_bit_after_a_death_within_a_commit_or_a_fold"),
];

/// Blows in each hunting test: some mutants do harm only now and then.
const BLOWS: u32 = 300;
/// And in the same test without the mutant: some are struck but once a second. A mutant that took too long is compared with as many
/// blows, for that many could take as long without it; then both are tried with half of them.
const BLOWS_OF_CONTROL: u32 = 30;

/// A mutant may hang its program: that is noticing too, but it should not take long.
const LIMIT: Duration = Duration::from_secs(60);

fn main() {
    let arguments = Arguments::from_args();
    let run = Arc::new(Run::from_environment("mutants/release/outlast"));
    if !arguments.list && !has_hooks(&run) {
        runner::refuse("this outlast has no test hooks: run `make mutants`");
    }
    let engine = Mutant::ALL.iter().map(|(_, name)| (*name, hunt(name, run.clone())));
    let engine = engine.map(|(name, hunt)| Trial::test(format!("engine::{name}"), hunt));
    let store = STORE.iter().map(|(name, hunter)| Trial::test(format!("store::{name}"), hunt_in_store(name, hunter)));
    let conclusion = libtest_mimic::run(&arguments, engine.chain(store).collect());
    // Ending the process runs no destructor, and the last holder removes what was copied.
    drop(run);
    conclusion.exit();
}

/// A hook that is not understood would end every program, which looks as if it had been noticed.
fn has_hooks(run: &Run) -> bool {
    let asks = |name: &str| Command::new(run.workshop.outlast()).args(["run", "--test-hook", name, "--help"]).output();
    Mutant::ALL.iter().all(|(_, name)| asks(name).is_ok_and(|output| output.status.success()))
}

fn hunt(mutant: &'static str, run: Arc<Run>) -> impl FnOnce() -> Result<(), Failed> {
    move || {
        let hunters = HUNTERS.iter().find(|(name, _)| *name == mutant).map(|(_, hunters)| *hunters);
        for hunter in hunters.ok_or("no test is named to notice this mutant")? {
            let plain = hunter.matches("::").count() == 1;
            let name = if plain { format!("{hunter}::async::ring::root") } else { hunter.to_string() };
            let order =
                |mutant, blows| Order { name: &name, seed: seed_of(run.seed, &name), blows, limit: LIMIT, mutant };
            let mut blows = BLOWS;
            while let Err(failure) = run.workshop.run(&order(Some(mutant), blows)) {
                let late = |text: &str| text.contains(watchdog::TOO_LONG);
                let text = failure.to_string();
                let control = if late(&text) { blows } else { BLOWS_OF_CONTROL };
                match run.workshop.run(&order(None, control)) {
                    Ok(_) => {
                        println!("{mutant}: noticed by {name}: {}", text.lines().next().unwrap_or_default());
                        return Ok(());
                    }
                    // So many take too long here whatever is switched off.
                    Err(e) if late(&text) && late(&e.to_string()) && blows / 2 >= BLOWS_OF_CONTROL => blows /= 2,
                    // A test that fails without the mutant as well has noticed nothing.
                    Err(e) => return Err(format!("{name} fails without the mutant too: {e}").into()),
                }
            }
        }
        println!("{mutant}: NOT NOTICED");
        let again = runner::again("mutants", run.seed, &format!("engine::{mutant}"));
        Err(format!("no test noticed that {mutant} was switched off; run it again: {again}").into())
    }
}

fn hunt_in_store(mutant: &'static str, hunter: &'static str) -> impl FnOnce() -> Result<(), Failed> {
    move || {
        let passes = |mutant: &str| {
            let mut test = Command::new(env!("CARGO"));
            test.args(["test", "--package", "outlast-store", "--lib", "--", "--exact", hunter]);
            test.env("OUTLAST_STORE_MUTANT", mutant).output().map(|output| {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                // No such test would pass, too.
                (text.contains("test result: ok. 1 passed"), text.contains("1 failed"))
            })
        };
        match (passes(mutant)?, passes("")?) {
            ((_, true), (true, _)) => {
                println!("{mutant}: noticed by {hunter} of the store");
                Ok(())
            }
            ((true, _), _) => Err(format!("{hunter} did not notice that {mutant} was switched off").into()),
            _ => Err(format!("{hunter} fails, or is not there, without the mutant too").into()),
        }
    }
}
