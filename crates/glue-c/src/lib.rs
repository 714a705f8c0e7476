//! The runtime of components for C: what `outlast_glue.h` declares, over `outlast_glue_rt`. Nothing is decided here.
//!
//! SAFETY, of the whole: pointers come from C, and are what the header asks for: those to structures live and are aligned, those to
//! things of the runtime's came from the function that makes them and were not given back. A null pointer is taken where the
//! header says so. A panic cannot leave a function that C calls: it ends the process, and a component is then micro-rebooted.

mod buffer;
mod call;
mod channel;
mod client;
mod component;
mod descriptor;
mod error;
mod mapping;
mod memory;
mod resources;
mod system;
#[cfg(test)]
mod tests;
