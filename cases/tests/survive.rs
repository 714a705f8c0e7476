//! The suite: every case under attack, each test in a process of its own.
//!
//! `OUTLAST_SEED` repeats a run, `OUTLAST_PROFILE=soak` makes it thorough, `OUTLAST_BIN` names the binary.

mod runner;

use std::cmp::Reverse;
use std::env;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use outlast_cases::gap;
use outlast_cases::isolation::{seed_of, Order};
use outlast_cases::quota::{self, Deaths, Short};
use outlast_cases::report::Report;
use outlast_cases::suite::{self, Profile, Test};
use runner::Run;

/// Deaths by SIGKILL, as the logs tell, that a whole run of a profile must reach.
const fn promised_kills(profile: Profile) -> u32 {
    match profile {
        Profile::Test => 500,
        Profile::Soak => 10_000,
    }
}

/// How often the tests of a case that died too seldom are run again, with other seeds.
const MAKE_UP_ROUNDS: u64 = 20;

/// Longest time a test may take; one that works takes a fraction of it.
const fn limit(profile: Profile) -> Duration {
    match profile {
        Profile::Test => Duration::from_secs(180),
        Profile::Soak => Duration::from_secs(1200),
    }
}

fn profile() -> Profile {
    match env::var("OUTLAST_PROFILE").as_deref() {
        Ok("soak") => Profile::Soak,
        Ok("test") | Err(_) => Profile::Test,
        Ok(other) => runner::refuse(&format!("OUTLAST_PROFILE is {other}: it must be test or soak")),
    }
}

/// What all tests did together. Every test holds one; the last one sees when it is alone.
type Sum = Arc<Mutex<Whole>>;

#[derive(Default)]
struct Whole {
    report: Report,
    /// How often each case died.
    deaths: Deaths,
    /// How long each test took.
    times: Vec<(Duration, String)>,
}

impl Whole {
    /// The tests nearest to the limit: on a slower machine they reach it first.
    fn longest(&mut self) -> String {
        self.times.sort_by_key(|(time, _)| Reverse(*time));
        let told = self.times.iter().take(5).map(|(time, name)| format!("{name} {:.0} s", time.as_secs_f64()));
        told.collect::<Vec<_>>().join(", ")
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let run = Arc::new(Run::from_environment("release/outlast"));
    let profile = profile();
    let sum = Sum::default();
    let tests: Vec<Test> = suite::all().into_iter().filter(|test| test.is_in(profile)).collect();
    if !arguments.list {
        println!("OUTLAST_SEED={} ({:?} profile)", run.seed, profile);
        tell_skipped(&tests, profile);
    }
    let mut trials: Vec<Trial> = tests.into_iter().map(|test| trial(test, profile, run.clone(), sum.clone())).collect();
    trials.push(Trial::test("kills", {
        let whole = arguments.filter.is_none() && arguments.skip.is_empty();
        let run = run.clone();
        move || judge_sum(&run, sum, profile, whole)
    }));
    let conclusion = libtest_mimic::run(&arguments, trials);
    // Ending the process runs no destructor, and the last holder removes what was copied.
    drop(run);
    conclusion.exit();
}

fn trial(test: Test, profile: Profile, run: Arc<Run>, sum: Sum) -> Trial {
    let skipped = reason_to_skip(&test, profile).is_some();
    let name = test.name();
    let runner = move || {
        let begun = Instant::now();
        let report = run_once(&run, &test, profile, run.seed)?;
        let mut sum = sum.lock().map_err(|_| "another test panicked")?;
        sum.deaths.add(test.case.name, report.phases.total());
        sum.report.add(&report);
        sum.times.push((begun.elapsed(), test.name()));
        Ok(())
    };
    Trial::test(name, runner).with_ignored_flag(skipped)
}

fn run_once(run: &Run, test: &Test, profile: Profile, seed: u64) -> Result<Report, Failed> {
    let name = test.name();
    let order = Order {
        name: &name,
        seed: seed_of(seed, &name),
        blows: test.blows(profile),
        limit: limit(profile),
        mutant: None,
    };
    run.workshop
        .run(&order)
        .map_err(|failure| format!("{failure}\nrun it again: {}", runner::again("survive", seed, &name)))
        // The runner prints failures when all is over, which may be an hour away.
        .inspect_err(|failure| println!("{name}: {failure}"))
        .map_err(Failed::from)
}

/// Kills cases that died too seldom with further seeds, until each has died as often as it must. Those that did not come to that, by
/// name.
fn make_up(run: &Run, sum: &mut Whole, profile: Profile, whole: bool) -> Result<Vec<Short>, Failed> {
    let tests: Vec<Test> = suite::all().into_iter().filter(|test| test.is_in(profile)).collect();
    let may_run = |test: &&Test| quota::is_killed(test) && reason_to_skip(test, profile).is_none();
    for round in 1..=MAKE_UP_ROUNDS {
        let short = sum.deaths.short(&tests, whole);
        let more = |test: &&Test| short.iter().any(|one| one.case == test.case.name && one.deaths.is_some());
        let more: Vec<&Test> = tests.iter().filter(may_run).filter(more).collect();
        if more.is_empty() {
            return Ok(short);
        }
        for test in more {
            let report = run_once(run, test, profile, run.seed.wrapping_add(round))?;
            sum.deaths.add(test.case.name, report.phases.total());
            sum.report.add(&report);
        }
    }
    Ok(sum.deaths.short(&tests, whole))
}

/// What the machine lacks, or, in the short profile, what is known not to hold yet.
fn reason_to_skip(test: &Test, profile: Profile) -> Option<String> {
    let known = || gap::of(test).filter(|_| profile == Profile::Test);
    test.obstacle().or_else(|| known().map(|why| format!("KNOWN GAP: {why}")))
}

fn tell_skipped(tests: &[Test], profile: Profile) {
    for test in tests {
        if let Some(reason) = reason_to_skip(test, profile) {
            println!("skipped {}: {reason}", test.name());
        }
    }
}

/// Waits for all other tests, then prints and judges what they did together.
fn judge_sum(run: &Run, sum: Sum, profile: Profile, whole: bool) -> Result<(), Failed> {
    // Tests that were filtered out or are done have let go of it.
    while Arc::strong_count(&sum) > 1 {
        thread::sleep(Duration::from_millis(20));
    }
    let mut sum = sum.lock().map_err(|_| "another test panicked")?;
    println!("longest: {}", sum.longest());
    let short = match profile {
        Profile::Test => Vec::new(),
        Profile::Soak => make_up(run, &mut sum, profile, whole)?,
    };
    let sum = &sum.report;
    let kills = sum.phases.total();
    println!("{} blows in {} runs: {kills} deaths by SIGKILL, {} recoveries", sum.landed, sum.runs, sum.recovered);
    println!("runs that fell into the window of a system without io_uring: {}", sum.window);
    println!("phases at the kills: {}", sum.phases);
    if !short.is_empty() {
        let names: Vec<String> = short.iter().map(Short::to_string).collect();
        return Err(format!("each case was promised {} deaths; fewer had: {}", quota::EACH, names.join(", ")).into());
    }
    if !whole {
        return Ok(());
    }
    if kills < promised_kills(profile) {
        return Err(format!("only {kills} kills landed, {} were promised", promised_kills(profile)).into());
    }
    let empty = sum.phases.empty_phases();
    if profile == Profile::Soak && !empty.is_empty() {
        return Err(format!("no kill landed in: {}", empty.join(", ")).into());
    }
    Ok(())
}
