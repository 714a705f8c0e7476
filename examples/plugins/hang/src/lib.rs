//! `hang` as a component: what it concludes is in `outlast_modules::hang`, which is compiled a second time here.
//!
//! Its settings are an object of JSON, `{"limit_ms": 500}`, or nothing: then only what is known can be too long.

mod translated;

wit_bindgen::generate!({ path: "../../../crates/plugins/wit", world: "module" });

use exports::outlast::module::policy::Guest;
use outlast::module::calls;
use outlast::module::types::{Command, Event, Happening, Subject, Watch};
use outlast_interfaces::hang::Settings;
use outlast_modules::hang::Threads;
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

struct Hang;

/// What is said of a program.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    limit_ms: Option<u64>,
}

#[derive(Default)]
struct State {
    proc: u32,
    pmc: u32,
    programs: BTreeMap<String, Threads>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn settings(text: &str) -> Result<Settings, String> {
    let said: Said = match text.trim() {
        "" => Said::default(),
        text => serde_json::from_str(text).map_err(|e| format!("settings: {e}"))?,
    };
    Ok(Settings::with_limit(said.limit_ms.map(Duration::from_millis)))
}

impl Guest for Hang {
    fn start() -> Result<(), String> {
        let (pmc, proc) = (calls::use_pin("pmc")?, calls::use_pin("proc")?);
        calls::subscr_event(pmc, Subject::PmcCounted)?;
        calls::subscr_event(proc, Subject::ProcDied)?;
        calls::subscr_event(proc, Subject::ProcRenewed)?;
        STATE.with_borrow_mut(|state| (state.proc, state.pmc) = (proc, pmc));
        Ok(())
    }

    fn protect(program: String, text: String) -> Result<(), String> {
        let settings = settings(&text)?;
        let every = settings.every.as_nanos() as u64;
        STATE.with_borrow_mut(|state| {
            calls::issue_cmd(state.pmc, &Command::PmcWatch(Watch { program: program.clone(), every }))?;
            state.programs.insert(program, Threads::new(settings));
            Ok(())
        })
    }

    fn release(program: String) {
        STATE.with_borrow_mut(|state| state.programs.remove(&program));
    }

    fn on_event(event: Event) -> Result<(), String> {
        STATE.with_borrow_mut(|state| {
            let program = event.program.unwrap_or_default();
            let Some(threads) = state.programs.get_mut(&program) else { return Ok(()) };
            match event.what {
                Happening::ProcDied(_) => threads.have_ended(),
                Happening::ProcRenewed => threads.are_others(),
                Happening::PmcCounted(counts) => {
                    let counts: Vec<_> = counts.iter().map(translated::count).collect();
                    if let Some(hang) = threads.see(&counts) {
                        calls::issue_cmd(state.proc, &Command::ProcFlag(translated::hang(hang)))?;
                    }
                    if let Some(starvation) = threads.starved(&counts) {
                        calls::issue_cmd(state.proc, &Command::ProcStarves(translated::starvation(starvation)))?;
                    }
                }
                _ => (),
            }
            Ok(())
        })
    }
}

export!(Hang);
