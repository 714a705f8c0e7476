//! `hang`: flags threads that do not leave a code section within what it has taken before (RMK, §5, *AHD*). What is flagged is ended, and the
//! module `crash` decides what comes then. Of components it flags those whose calls do not end ([`OF_COMPONENTS`]).
//!
//! What it concludes from what it sees is in [`Threads`], which knows nothing of the core: `examples/plugins/hang` is a component made
//! of the same.

#[cfg(unix)]
mod calls;
#[cfg(unix)]
mod component;
#[cfg(unix)]
mod module;
#[cfg(unix)]
mod named;
mod sections;
mod threads;
mod unscheduled;
mod waiting;

#[cfg(unix)]
pub use component::OF_COMPONENTS;
#[cfg(unix)]
pub use module::MANIFEST;
pub use threads::Threads;
