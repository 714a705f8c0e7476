//! Components that are built from `examples/plugins`, and a core with pins that take down what they are asked for.

use outlast_core::{Event, Failure, Manifest, Microkernel, Payload, Pin};
use outlast_interfaces::{pmc, proc, sect};
use outlast_plugins::{manifest, Compiled};
use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::sync::Once;

/// A component of the examples, as bytes.
pub fn component(name: &str) -> Vec<u8> {
    static BUILT: Once = Once::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins");
    BUILT.call_once(|| {
        let built = Command::new(examples.join("build")).status().expect("a shell");
        assert!(built.success(), "the examples are not built");
    });
    std::fs::read(examples.join(format!("../../target/plugins/components/{name}.wasm"))).expect("a component")
}

/// It, under its own name.
pub fn plugin(name: &str) -> Manifest {
    manifest(name, "", Compiled::of(&component(name)).expect("it fits"))
}

/// What pins were asked for, in order.
pub type Asked = Rc<RefCell<Vec<(&'static str, Payload)>>>;

struct Notes(Asked);

impl Pin for Notes {
    fn operate(&mut self, operation: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        self.0.borrow_mut().push((operation, argument.clone()));
        Ok(Payload::NONE)
    }
}

/// A core with the pins `proc`, `pmc` and `sect`.
pub fn kernel() -> (Microkernel, Asked) {
    let (mut kernel, asked) = (Microkernel::new(), Asked::default());
    for interface in [&proc::INTERFACE, &pmc::INTERFACE, &sect::INTERFACE] {
        let asked = Rc::clone(&asked);
        kernel.install_pin(interface, Box::new(move || Ok(Box::new(Notes(Rc::clone(&asked))))));
    }
    (kernel, asked)
}

/// The settings of a component.
pub fn settings(text: &str) -> Payload {
    Payload::of(&text).expect("text")
}

/// Threads of the program `it` were looked at.
pub fn counted(counts: &[pmc::Count]) -> Event {
    event(pmc::NAME, pmc::COUNTED, Payload::of(&counts).expect("counts"))
}

/// An event of the program `it`.
pub fn event(pin: &'static str, name: &'static str, payload: Payload) -> Event {
    Event { pin, name, program: Some("it".into()), payload }
}

/// The hangs that were flagged since this was asked last.
pub fn flagged(asked: &Asked) -> Vec<proc::Hang> {
    let flags = asked.take().into_iter().filter(|(operation, _)| *operation == proc::FLAG);
    flags.map(|(_, payload)| payload.read().expect("a hang")).collect()
}
