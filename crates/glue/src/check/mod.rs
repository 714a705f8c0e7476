//! From syntax to model, and what contradicts itself on the way.

mod functions;
mod machine;
mod properties;
mod types;

use crate::diagnostic::Diagnostic;
use crate::model::Interface;
use crate::syntax::File;

/// What the file means as far as it means something; the diagnostics say whether that is enough.
pub fn check(file: &File, diagnostics: &mut Vec<Diagnostic>) -> Option<Interface> {
    let properties = properties::properties(file, diagnostics);
    let typedefs = types::typedefs(file, diagnostics);
    let mut functions = functions::functions(file, &typedefs, diagnostics);
    let transitions = machine::machine(file, &mut functions, diagnostics);
    let (service, properties) = properties?;
    let interface = Interface { service, properties, functions, transitions, typedefs };
    machine::reachable(file, &interface, diagnostics);
    machine::agrees(file, &interface, diagnostics);
    Some(interface)
}
