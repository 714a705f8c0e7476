//! The engine's events and figures, in the terms of the log.

use crate::clock;
use crate::log::{Entry, Kind};
use crate::names;
use outlast_image::control::Control;
use outlast_image::degradation::Degradation;
use outlast_image::event::{event_kind, Event};
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

/// The line that an event makes; `None` if the supervisor reports the same with more than the engine knows.
pub fn entry(event: &Event) -> Option<Entry> {
    let at = |kind| Entry::at(clock::time_of_day(event.time_ns), kind);
    let signal = || names::signal(event.arg as i32);
    match event.kind {
        event_kind::ROLLBACK => {
            let took = Duration::from_nanos(event.duration_ns);
            Some(at(Kind::Rollback).cause(signal()).rung(event.rung).took(took))
        }
        event_kind::CRASHED => Some(at(Kind::Crashed).cause(format!("{} at {:#x}", signal(), event.arg2))),
        event_kind::DEGRADATION => Some(at(Kind::Degradation).cause(key(event.arg))),
        event_kind::SUSPENDED => Some(at(Kind::Suspended).cause(key(event.arg))),
        event_kind::DETACHED => Some(at(Kind::Detached)),
        event_kind::GIVE_UP => Some(at(Kind::GaveUp).cause(signal()).rung(event.rung)),
        event_kind::ENGINE_ERROR => {
            Some(at(Kind::EngineError).cause(format!("line {}, error {}", event.arg, event.arg2 as i64)))
        }
        event_kind::ENGINE_FAULT => {
            let signal = names::signal(event.rung as i32);
            Some(at(Kind::EngineError).cause(format!("{signal} at {:#x}, on {:#x}", event.arg, event.arg2)))
        }
        _ => None,
    }
}

/// The name of a degradation by its bit number.
fn key(bit: u64) -> String {
    match Degradation::ALL.iter().find(|d| **d as u64 == bit) {
        Some(degradation) => degradation.key().into(),
        None => format!("degradation {bit}"),
    }
}

/// The names of all degradations in a word of bits.
pub fn degradations(bits: u64) -> Vec<&'static str> {
    Degradation::ALL.iter().filter(|d| bits & d.bit() != 0).map(|d| d.key()).collect()
}

/// How often the program was brought back, by the engine and by the supervisor.
pub fn recoveries(control: &Control) -> u64 {
    u64::from(control.restored.load(Acquire))
}
