//! How wishes become others.

use super::Wishes;
use outlast_interfaces::change::{Added, Change, Every, Limit};
use outlast_interfaces::sysc::Visible;
use outlast_interfaces::{checkpoint, crash, generations, hang, leaks, plugin, server, storm, visible};

impl Wishes {
    /// What is wished once a module protects the program in this way.
    pub(crate) fn with(self, added: &Added) -> Self {
        match *added {
            Added::Crash { retries } => {
                let crash = self.crash.unwrap_or(crash::USUAL);
                Self { crash: Some(crash::Settings { retries: retries.unwrap_or(crash.retries) }), ..self }
            }
            Added::Visible { outputs } => {
                let before = self.visible.map_or(Visible::Together, |visible| visible.outputs);
                Self { visible: Some(visible::Settings { outputs: outputs.unwrap_or(before) }), ..self }
            }
            Added::Server => Self { server: Some(server::Settings {}), ..self },
            Added::Checkpoint { every } => {
                let checkpoint = match every {
                    Some(Every::At(every)) => checkpoint::Settings { every, sparing: false },
                    Some(Every::Auto) => checkpoint::AUTO,
                    None => self.checkpoint.unwrap_or(checkpoint::AUTO),
                };
                Self { checkpoint: Some(checkpoint), ..self }
            }
            Added::Generations { settings } => {
                Self { generations: Some(settings.or(self.generations).unwrap_or(generations::USUAL)), ..self }
            }
            Added::Hang { limit, ref sections } => {
                let hang = match limit {
                    Some(Limit::Learnt) => hang::Settings::with_limit(None),
                    Some(Limit::At(limit)) => hang::Settings::with_limit(Some(limit)),
                    None => self.hang.unwrap_or(hang::Settings::with_limit(None)),
                };
                let sections = sections.clone().unwrap_or(self.sections);
                Self { hang: Some(hang), sections, ..self }
            }
            Added::Storm { measure, ref alert } => {
                let alert = alert.clone().unwrap_or(self.alert);
                Self { storm: Some(measure.or(self.storm).unwrap_or(storm::USUAL)), alert, ..self }
            }
            Added::Leaks { settings } => Self { leaks: Some(settings.or(self.leaks).unwrap_or(leaks::USUAL)), ..self },
            Added::Plugin { ref name, ref file, ref settings } => {
                let mut plugins = self.plugins;
                let before = plugins.iter().position(|plugin| plugin.name == *name);
                let at = before.unwrap_or(plugins.len());
                let told = before.map(|at| plugins.remove(at).settings);
                let settings = settings.clone().or(told).unwrap_or_default();
                plugins.insert(at, plugin::Wish { name: name.clone(), file: file.clone(), settings });
                Self { plugins, ..self }
            }
        }
    }

    /// What is wished once this module does not protect it any more.
    pub(crate) fn without(mut self, module: &str) -> Self {
        match module {
            crash::NAME => self.crash = None,
            visible::NAME => self.visible = None,
            server::NAME => self.server = None,
            checkpoint::NAME => self.checkpoint = None,
            generations::NAME => self.generations = None,
            hang::NAME => (self.hang, self.sections) = (None, Vec::new()),
            storm::NAME => (self.storm, self.alert) = (None, Vec::new()),
            leaks::NAME => self.leaks = None,
            _ => self.plugins.retain(|plugin| plugin.name != module),
        }
        self
    }

    /// The changes that make other wishes of these.
    pub fn towards(&self, other: &Self) -> Vec<Change> {
        let differs = |module: &&str| self.words(module) != other.words(module);
        let modules = [
            crash::NAME,
            visible::NAME,
            server::NAME,
            checkpoint::NAME,
            generations::NAME,
            hang::NAME,
            storm::NAME,
            leaks::NAME,
        ];
        let change = |module: &str| other.added(module).map_or(Change::Remove(module.into()), Change::Add);
        modules.into_iter().filter(differs).map(change).collect()
    }

    /// All that a module is told; none: it does not protect the program.
    fn added(&self, module: &str) -> Option<Added> {
        Some(match module {
            crash::NAME => Added::Crash { retries: Some(self.crash?.retries) },
            visible::NAME => Added::Visible { outputs: Some(self.visible?.outputs) },
            server::NAME => self.server.map(|server::Settings {}| Added::Server)?,
            checkpoint::NAME => Added::Checkpoint {
                every: Some(match self.checkpoint? {
                    checkpoint::AUTO => Every::Auto,
                    checkpoint::Settings { every, .. } => Every::At(every),
                }),
            },
            generations::NAME => Added::Generations { settings: Some(self.generations?) },
            hang::NAME => Added::Hang {
                limit: Some(self.hang?.limit.map_or(Limit::Learnt, Limit::At)),
                sections: Some(self.sections.clone()),
            },
            leaks::NAME => Added::Leaks { settings: Some(self.leaks?) },
            _ => Added::Storm { measure: Some(self.storm?), alert: Some(self.alert.clone()) },
        })
    }
}
