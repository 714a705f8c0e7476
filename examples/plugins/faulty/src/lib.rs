//! `faulty`: fails in the way that its settings say, at once (`now loop`) or at every third event (`third loop`); with `looks` before that
//! it has threads looked at. For tests.

wit_bindgen::generate!({ path: "../../../crates/plugins/wit", world: "module" });

use exports::outlast::module::policy::Guest;
use outlast::module::calls;
use outlast::module::types::{Command, Event, Happening, Subject, Watch};
use std::cell::RefCell;
use std::hint::black_box;

struct Faulty;

#[derive(Default)]
struct State {
    way: String,
    proc: u32,
    pmc: u32,
    events: u32,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

impl Guest for Faulty {
    fn start() -> Result<(), String> {
        let (proc, pmc) = (calls::use_pin("proc")?, calls::use_pin("pmc")?);
        for event in [Subject::ProcDied, Subject::ProcRecovered, Subject::ProcRenewed] {
            calls::subscr_event(proc, event)?;
        }
        calls::subscr_event(pmc, Subject::PmcCounted)?;
        STATE.with_borrow_mut(|state| (state.proc, state.pmc) = (proc, pmc));
        Ok(())
    }

    fn protect(program: String, settings: String) -> Result<(), String> {
        let pmc = STATE.with_borrow(|state| state.pmc);
        if let Some(way) = settings.strip_prefix("now ") {
            fail(way);
        }
        let rest = settings.strip_prefix("looks ");
        if rest.is_some() {
            calls::issue_cmd(pmc, &Command::PmcWatch(Watch { program, every: 10_000_000 }))?;
        }
        let way = rest.unwrap_or(&settings).strip_prefix("third ");
        let way = way.ok_or_else(|| format!("settings: now WAY, third WAY or looks third WAY, not {settings:?}"))?;
        STATE.with_borrow_mut(|state| state.way = way.into());
        Ok(())
    }

    fn release(_: String) {}

    fn on_event(event: Event) -> Result<(), String> {
        let fails = STATE.with_borrow_mut(|state| {
            state.events += 1;
            (state.events % 3 == 0).then(|| state.way.clone())
        });
        if let Happening::ProcRecovered(at) = event.what {
            calls::log(&format!("recovered at {at}"));
        }
        fails.map_or(Ok(()), |way| fail(&way).map_or(Ok(()), Err))
    }
}

/// Fails; or comes back with what it refuses to do.
fn fail(way: &str) -> Option<String> {
    match way {
        "loop" => loop {
            black_box(0);
        },
        // One instruction that takes long, again and again.
        "fill" => {
            let mut memory = vec![0u8; 8 << 20];
            loop {
                black_box(&mut memory).fill(black_box(1));
            }
        }
        "trap" => core::arch::wasm32::unreachable(),
        "panic" => panic!("on purpose"),
        "flood" => {
            let mut all = Vec::new();
            loop {
                all.push(black_box(vec![1u8; 65536]));
            }
        }
        "deep" => Some(deep(0).to_string()),
        "calls itself" => Some(calls_itself(black_box(0)).to_string()),
        "wild" => {
            // SAFETY: none; that is what is tried. It is beyond all memory of the component.
            unsafe { black_box(0xffff_0000 as *mut u8).write_volatile(1) };
            None
        }
        "chatter" => loop {
            calls::log(&"\x1b[31mx".repeat(100_000));
        },
        "refuse" => Some("\x1b[31m".repeat(100_000)),
        "calls" => STATE.with_borrow(|state| loop {
            let _ = black_box(calls::subscr_event(state.proc, Subject::ProcDied));
            let _ = calls::use_pin("clock");
            calls::release_pin(77);
        }),
        _ => None,
    }
}

fn deep(n: u64) -> u64 {
    let room = black_box([n; 64]);
    if n == u64::MAX {
        0
    } else {
        deep(n + 1) + room[7]
    }
}

/// Without a stack of its own, but for what it returns to.
#[inline(never)]
fn calls_itself(n: u64) -> u64 {
    if n == u64::MAX {
        0
    } else {
        calls_itself(n + 1).wrapping_mul(3) ^ n
    }
}

export!(Faulty);
