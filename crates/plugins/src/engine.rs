//! What compiles components and runs them: one for all, made when the first is loaded.

use crate::error::Error;
use std::sync::OnceLock;
use wasmtime::{Config, Engine};

static ENGINE: OnceLock<Engine> = OnceLock::new();

/// Components may go so deep; on the stack of whoever calls them.
const STACK: usize = 128 << 10;

/// The engine.
pub fn engine() -> Result<&'static Engine, Error> {
    if let Some(engine) = ENGINE.get() {
        return Ok(engine);
    }
    let made = Engine::new(&config()).map_err(|e| Error::Here(format!("no engine for components: {e:#}")))?;
    Ok(ENGINE.get_or_init(|| made))
}

/// The engine if there is one. May be called by handlers of signals.
pub fn made() -> Option<&'static Engine> {
    ENGINE.get()
}

/// No handlers of signals, which are the supervisor's: bounds are checked by instructions, so that memory needs no room around it either.
fn config() -> Config {
    let mut config = Config::new();
    config.signals_based_traps(false);
    config.memory_reservation(0).memory_guard_size(0).memory_reservation_for_growth(0).memory_init_cow(false);
    config.epoch_interruption(true);
    config.max_wasm_stack(STACK);
    config.wasm_simd(false).wasm_relaxed_simd(false).wasm_tail_call(false);
    config
}
