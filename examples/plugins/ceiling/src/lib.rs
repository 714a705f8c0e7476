//! `ceiling`: a program that has more threads than it should is ended, and goes on from its last commit.
//!
//! Its settings are a number: as many threads a program may have.

wit_bindgen::generate!({ path: "../../../crates/plugins/wit", world: "module" });

use exports::outlast::module::policy::Guest;
use outlast::module::calls;
use outlast::module::types::{Command, Count, Event, Hang, Happening, Stays, Subject, Watch};
use std::cell::RefCell;
use std::collections::BTreeMap;

struct Ceiling;

/// A program's threads are looked at so often: four times a second.
const EVERY: u64 = 250_000_000;

/// What the module knows.
#[derive(Default)]
struct State {
    /// The pins, by the handles that the core gave us.
    proc: u32,
    pmc: u32,
    /// As many threads each program may have.
    programs: BTreeMap<String, usize>,
}

thread_local! {
    /// A component has one thread.
    static STATE: RefCell<State> = RefCell::default();
}

impl Guest for Ceiling {
    fn start() -> Result<(), String> {
        let (proc, pmc) = (calls::use_pin("proc")?, calls::use_pin("pmc")?);
        calls::subscr_event(pmc, Subject::PmcCounted)?;
        STATE.with_borrow_mut(|state| (state.proc, state.pmc) = (proc, pmc));
        Ok(())
    }

    fn protect(program: String, settings: String) -> Result<(), String> {
        let most = settings.trim().parse().map_err(|_| format!("settings: a number of threads, not {settings:?}"))?;
        STATE.with_borrow_mut(|state| {
            calls::issue_cmd(state.pmc, &Command::PmcWatch(Watch { program: program.clone(), every: EVERY }))?;
            state.programs.insert(program, most);
            Ok(())
        })
    }

    fn release(program: String) {
        STATE.with_borrow_mut(|state| state.programs.remove(&program));
    }

    fn on_event(event: Event) -> Result<(), String> {
        let (Some(program), Happening::PmcCounted(threads)) = (event.program, event.what) else { return Ok(()) };
        STATE.with_borrow(|state| match state.programs.get(&program) {
            Some(most) if threads.len() > *most => flag(state.proc, &threads, *most),
            _ => Ok(()),
        })
    }
}

/// The newest thread is the one that was too many.
fn flag(proc: u32, threads: &[Count], most: usize) -> Result<(), String> {
    let Some(newest) = threads.iter().max_by_key(|count| count.thread) else { return Ok(()) };
    let why = Stays::Told(format!("{} threads, and {most} is the most", threads.len()));
    let hang = Hang { thread: newest.thread, section: newest.section, has_moved: false, why };
    calls::issue_cmd(proc, &Command::ProcFlag(hang)).map(drop)
}

export!(Ceiling);
