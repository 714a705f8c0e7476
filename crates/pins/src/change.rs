//! Modules that are added and removed, and told otherwise, while the program runs.

use crate::protection::{Protection, Wishes};
use outlast_core::{Failure, Payload};
use outlast_image::inject::option;
use outlast_interfaces::change::{Added, Change, Every, Limit};
use outlast_interfaces::sysc::Visible;
use outlast_interfaces::{checkpoint, crash, generations, hang, leaks, server, storm, visible};
use outlast_supervisor::decision::Changed;
use outlast_supervisor::options::Options;
use std::time::Duration;

/// Takes from the options what this module has asked for: how it is where nobody does.
pub fn leave_to_nobody(options: &mut Options, module: &str) {
    match module {
        visible::NAME => {
            options.set(option::NO_VISIBLE, true);
            options.set(option::EACH_OUTPUT, false);
        }
        server::NAME => options.set(option::REPLIES, false),
        checkpoint::NAME => {
            options.interval_ns = 0;
            options.set(option::SPARING, false);
        }
        generations::NAME => options.generations = None,
        _ => (),
    }
}

/// Bytes, as people write them.
fn size(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let whole = units.into_iter().find(|(_, unit)| bytes % unit == 0);
    whole.map_or(bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

/// The module that a change is about.
fn module_of(change: &Change) -> &str {
    match change {
        Change::Remove(module) => module,
        Change::Add(Added::Crash { .. }) => crash::NAME,
        Change::Add(Added::Visible { .. }) => visible::NAME,
        Change::Add(Added::Server) => server::NAME,
        Change::Add(Added::Checkpoint { .. }) => checkpoint::NAME,
        Change::Add(Added::Generations { .. }) => generations::NAME,
        Change::Add(Added::Hang { .. }) => hang::NAME,
        Change::Add(Added::Storm { .. }) => storm::NAME,
        Change::Add(Added::Leaks { .. }) => leaks::NAME,
    }
}

impl Wishes {
    /// What a module is told, as options of `outlast run`; none: it does not protect the program.
    pub fn words(&self, module: &str) -> Option<String> {
        let words = match module {
            crash::NAME => format!("--retries {}", self.crash?.retries),
            visible::NAME => match self.visible?.outputs {
                Visible::Together => "--commit visible".into(),
                Visible::Each => "--commit each".into(),
            },
            server::NAME => self.server.map(|server::Settings {}| "--server".into())?,
            checkpoint::NAME => match self.checkpoint? {
                checkpoint::AUTO => "--every auto".into(),
                checkpoint::Settings { every, .. } => format!("--every {}", humantime::format_duration(every)),
            },
            generations::NAME => {
                let generations::Settings { every, keep, budget } = self.generations?;
                let time = |time: Duration| humantime::format_duration(time).to_string().replace(' ', "");
                format!("--generations {}:{}:{}", time(every), time(keep), size(budget))
            }
            hang::NAME => {
                let limit = self.hang?.limit.map(|limit| format!("={}", humantime::format_duration(limit)));
                let sections = (!self.sections.is_empty()).then(|| format!(" --sections {}", self.sections.join(",")));
                format!("--hang{}{}", limit.unwrap_or_default(), sections.unwrap_or_default())
            }
            storm::NAME => {
                let storm::Settings { most, within } = self.storm?;
                let alert = self.alert.iter().map(|word| format!(" --alert={word}")).collect::<String>();
                format!("--storm {most}:{}{alert}", humantime::format_duration(within).to_string().replace(' ', ""))
            }
            leaks::NAME => {
                let leaks::Settings { window, percent } = self.leaks?;
                format!("--leaks {}:{percent}", humantime::format_duration(window).to_string().replace(' ', ""))
            }
            _ => {
                let plugin = self.plugins.iter().find(|plugin| plugin.name == module)?;
                format!("--module {module}={}", plugin.settings)
            }
        };
        Some(words)
    }

    /// What is wished once a module protects the program in this way.
    fn with(self, added: &Added) -> Self {
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
        }
    }

    /// What is wished once this module does not protect it any more.
    fn without(mut self, module: &str) -> Self {
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

    fn settings_of(&self, module: &str) -> Result<Option<Payload>, Failure> {
        Ok(self.settings()?.into_iter().find(|(name, _)| *name == module).map(|(_, payload)| payload))
    }
}

impl Protection {
    /// Does what a person wishes, or leaves everything as it is and says why.
    pub(crate) fn change_as_wished(&mut self, change: &Change, options: &Options) -> Result<Changed, String> {
        let (module, before) = (module_of(change), Wishes::of(options));
        let told_before = before.words(module);
        let after = match change {
            Change::Add(added) => before.clone().with(added),
            Change::Remove(_) if !self.manifests.iter().any(|manifest| manifest.name == module) => {
                return Err(format!("there is no module {module}; `outlast module list` has all"))
            }
            Change::Remove(_) if told_before.is_none() => return Err(format!("{module} does not protect it")),
            Change::Remove(_) => before.clone().without(module),
        };
        if after.visible.is_none() && options.bits & option::DURABLE != 0 && options.lag_ns != 0 {
            return Err("with --durable DURATION files are taken back after a loss of power, without the module visible after every death".into());
        }
        if after.server.is_some() && after.visible.is_none() {
            return Err(
                "server spares commits before replies, which visible makes: without visible there are none to spare"
                    .into(),
            );
        }
        let mut chosen = options.clone();
        leave_to_nobody(&mut chosen, module);
        chosen.retries = after.crash.map(|crash| crash.retries);
        (chosen.hang, chosen.storm, chosen.leaks) = (after.hang, after.storm, after.leaks);
        chosen.plugins.clone_from(&after.plugins);
        chosen.sections.clone_from(&after.sections);
        chosen.alert.clone_from(&after.alert);
        let chosen = match self.tell(module, &after, chosen) {
            Ok(chosen) => chosen,
            Err(failure) => {
                // It goes on as it was told before.
                let told = self.tell(module, &before, options.clone());
                let notices = self.kernel.take_notices();
                self.note(notices);
                return Err(told.err().map_or(failure.to_string(), |worse| format!("{failure}; and {worse}")));
            }
        };
        let told = after.words(module);
        let what = match (told_before, told) {
            (None, Some(now)) => format!("{module} protects it: {now}"),
            (Some(before), None) => format!("{module} protects it no longer: {before} before"),
            (Some(before), Some(now)) if before != now => format!("{module}: {now}, {before} before"),
            _ => String::new(),
        };
        Ok(Changed { options: chosen, what })
    }

    /// All modules are told what these options say.
    pub(crate) fn restore_all(&mut self, options: &Options) -> Result<(), String> {
        let wishes = Wishes::of(options);
        let names: Vec<_> = self.manifests.iter().map(|manifest| manifest.name).collect();
        let mut told = names.into_iter().map(|name| self.tell(name, &wishes, options.clone()));
        told.find_map(Result::err).map_or(Ok(()), |failure| Err(failure.to_string()))
    }

    /// Has a module protect the program as is wished, or no longer; how the engine is to do so then. One that is not loaded is loaded
    /// again, whyever it is not.
    fn tell(&mut self, module: &str, wishes: &Wishes, options: Options) -> Result<Options, Failure> {
        let program = self.desk.borrow().program.clone();
        let settings = wishes.settings_of(module)?;
        let is_loaded = self.kernel.modules().any(|(manifest, _)| manifest.name == module);
        {
            let mut desk = self.desk.borrow_mut();
            desk.options = Some(options.clone());
            desk.looks.remove(module);
            desk.sights.forget(module);
        }
        let told = match settings {
            Some(settings) => {
                let manifest = self.manifests.iter().find(|manifest| manifest.name == module).copied();
                let loaded = match manifest.filter(|_| !is_loaded) {
                    Some(manifest) => self.kernel.load(manifest),
                    None => Ok(()),
                };
                loaded.and_then(|()| self.kernel.protect(module, &program, settings))
            }
            None if is_loaded => self.kernel.release(module, &program),
            None => Ok(()),
        };
        let chosen = self.desk.borrow_mut().options.take();
        told.map(|()| chosen.unwrap_or(options))
    }
}
