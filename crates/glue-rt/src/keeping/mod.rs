//! Who decides about deaths, and who is told of them.
//!
//! A component's death is an event of the pin `comp`, and what is to be done about it a module's decision. A system that nobody keeps
//! has the module `reboot` in each template: a micro-reboot asks nobody; and the module `hang` beside it. One that is kept has a thread of the manager's with the
//! modules that its owner wants, for all components together, and somebody who is told what happens:
//!
//! ```text
//!   template ── line (a socket): hung, died, serves ──▶ keeper: pin `comp` ─▶ modules
//!            ◀─ the control page: the verdict ────────          └──▶ whoever is told (a log)
//! ```
//!
//! A template that gets no verdict in time does what its own module says, which sees every death, too.

mod judge;
mod keeper;
mod line;
mod pin;

use std::time::Duration;

use outlast_core::{Manifest, Payload};
use outlast_interfaces::comp::{Death, Hang, Serves};
use outlast_interfaces::hang::{self, OfComponent};
use outlast_interfaces::proc::End;
use outlast_interfaces::reboot;
use serde::{Deserialize, Serialize};

pub(crate) use judge::Judge;
pub(crate) use keeper::Keeper;
pub(crate) use line::{Line, Verdict};

/// For so long a template waits for the manager. Clients wait as long, once for each death, while the manager stands still.
const PATIENCE: Duration = Duration::from_millis(200);

/// What happened to a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Happened {
    /// It is to be started, from this command line.
    Begun(String),
    Serves(Serves),
    /// An instance hangs, and is ended for that.
    Hung(i32, Hang),
    Died(Death),
    /// The process that instances are forked from ended, and another one is started.
    TemplateDied(i32, Option<End>),
    /// Why no instance will come any more.
    GivenUp(String),
    /// Its system ends. What the last instance had: the descriptors that it knew, and so many of them brought back.
    Ended {
        descriptors: u32,
        recovered: u32,
    },
    /// A module that decides about it failed, and how.
    ModuleFailed(String),
    /// A module has something to say.
    ModuleSaid(String),
}

/// Who is told, in the keeper's thread.
pub trait Tell: Send {
    fn tell(&mut self, component: &str, happened: &Happened);
}

/// How a system is kept.
pub struct Keeping {
    pub(crate) modules: Vec<(Manifest, Payload)>,
    pub(crate) hang: OfComponent,
    pub(crate) tell: Option<Box<dyn Tell>>,
}

impl Default for Keeping {
    /// As a system that nobody keeps: `reboot` decides, and nobody is told.
    fn default() -> Self {
        let usual = Payload::of(&reboot::USUAL).unwrap_or_default();
        let modules = outlast_modules::of_components().map(|module| (module, usual.clone())).into();
        Self { modules, hang: hang::USUAL, tell: None }
    }
}

impl Keeping {
    pub fn new() -> Self {
        Self::default()
    }

    /// Has this module decide, with these settings, in place of one of its name, or else before all others.
    #[must_use]
    pub fn module(mut self, manifest: Manifest, settings: Payload) -> Self {
        match self.modules.iter_mut().find(|(known, _)| known.name == manifest.name) {
            Some(known) => *known = (manifest, settings),
            None => self.modules.insert(0, (manifest, settings)),
        }
        self
    }

    /// Has the module `hang` flag calls by these settings. It watches from within each template, for it has to look often.
    #[must_use]
    pub fn hang(self, hang: OfComponent) -> Self {
        Self { hang, ..self }
    }

    /// Has this one told.
    #[must_use]
    pub fn tell(self, tell: impl Tell + 'static) -> Self {
        Self { tell: Some(Box::new(tell)), ..self }
    }
}
