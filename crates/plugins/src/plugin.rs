//! The module that a component is.

use crate::bindings::Module as World;
use crate::compiled::{in_a_line, Compiled};
use crate::host::{legible, Host};
use crate::{deadline, engine, events};
use outlast_core::confine::{self, Overrun};
use outlast_core::{Budget, Calls, Event, Failure, Manifest, Module, Payload};
use std::time::Duration;
use wasmtime::{Store, Trap};

/// What a component may take: processor time for one call, and memory in all.
const BUDGET: Budget = Budget { time: Duration::from_millis(100), memory: 16 << 20 };
/// The core's own measure is beyond that: what a component takes is not counted there, and what we take for it is little.
const OWN: Budget = Budget { time: Duration::from_secs(2), memory: 8 << 20 };

/// The manifest of a component under this name. Both stay for as long as this process, as those of modules that are compiled in do.
pub fn manifest(name: &str, file: &str, compiled: Compiled) -> Manifest {
    limited(name, file, compiled, BUDGET)
}

pub(crate) fn limited(name: &str, file: &str, compiled: Compiled, budget: Budget) -> Manifest {
    let compiled: &'static Compiled = Box::leak(Box::new(compiled));
    Manifest {
        name: String::leak(name.into()),
        what: String::leak(file.into()),
        make: Box::leak(Box::new(move || Box::new(Plugin { compiled, budget, running: None }) as Box<dyn Module>)),
        budget: OWN,
        reloads: 3,
    }
}

/// A component, which runs once it is started.
struct Plugin {
    compiled: &'static Compiled,
    budget: Budget,
    running: Option<(Store<Host>, World)>,
}

impl Plugin {
    /// Calls the component; if it fails at that the core is told to unload it.
    fn call<T>(
        &mut self,
        calls: &mut Calls,
        body: impl FnOnce(&mut Store<Host>, &World) -> wasmtime::Result<T>,
    ) -> Result<T, Failure> {
        let Some((store, world)) = &mut self.running else { return Err(Failure::Told("it is not started".into())) };
        confined(store, self.budget, calls, |store| body(store, world))
    }
}

/// Has a component's code run: it is given the core and so much time, and if it fails the core is told to unload it.
fn confined<T>(
    store: &mut Store<Host>,
    budget: Budget,
    calls: &mut Calls,
    body: impl FnOnce(&mut Store<Host>) -> wasmtime::Result<T>,
) -> Result<T, Failure> {
    store.set_epoch_deadline(1);
    store.data_mut().lend(calls);
    // What the component does is not ours, and has its own limits.
    let result = confine::suspended(|| deadline::within(budget.time, || body(store)));
    store.data_mut().take_back();
    match result {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(e)) => {
            let why = overrun(&e, store.data().limits.is_exceeded);
            calls.fail(why.clone());
            Err(Failure::Told(why.to_string()))
        }
        Err(e) => Err(Failure::Told(format!("it cannot be bounded in time here: {e}"))),
    }
}

fn overrun(e: &wasmtime::Error, is_memory: bool) -> Overrun {
    match e.downcast_ref::<Trap>() {
        _ if is_memory => Overrun::Memory,
        Some(Trap::Interrupt) => Overrun::Time,
        Some(trap) => Overrun::Fault(trap.to_string()),
        None => Overrun::Fault(in_a_line(e)),
    }
}

/// What a component said that it could not do.
fn refused(result: Result<(), String>) -> Result<(), Failure> {
    result.map_err(|why| Failure::Told(legible(&why)))
}

impl Module for Plugin {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        let engine = engine::engine().map_err(|e| Failure::Told(e.to_string()))?;
        let mut store = Store::new(engine, Host::new(self.budget.memory));
        store.limiter(|host| &mut host.limits);
        let compiled = self.compiled;
        let world = confined(&mut store, self.budget, calls, |store| compiled.0.instantiate(store))?;
        self.running = Some((store, world));
        refused(self.call(calls, |store, world| world.outlast_module_policy().call_start(store))?)
    }

    fn protect(&mut self, calls: &mut Calls, program: &str, settings: &Payload) -> Result<(), Failure> {
        let settings: String = settings.read()?;
        let policy = |store: &mut Store<Host>, world: &World| {
            world.outlast_module_policy().call_protect(store, program, &settings)
        };
        refused(self.call(calls, policy)?)
    }

    fn release(&mut self, calls: &mut Calls, program: &str) {
        // If it fails at that the core knows.
        let _ = self.call(calls, |store, world| world.outlast_module_policy().call_release(store, program));
    }

    fn on_event(&mut self, calls: &mut Calls, event: &Event) -> Result<(), Failure> {
        let Some(told) = events::told(event)? else { return Ok(()) };
        let Err(why) = self.call(calls, |store, world| world.outlast_module_policy().call_on_event(store, &told))?
        else {
            return Ok(());
        };
        let line = self.running.as_mut().and_then(|(store, _)| store.data_mut().line(&why));
        line.map_or(Ok(()), |line| Err(Failure::Told(line)))
    }
}
