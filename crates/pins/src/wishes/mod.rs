//! In which way a program is to be protected, as options and policies say it.

mod changes;
mod words;

use outlast_core::{Failure, Payload};
use outlast_image::inject::option;
use outlast_interfaces::sysc::Visible;
use outlast_interfaces::{checkpoint, crash, generations, hang, leaks, plugin, server, storm, visible};
use outlast_supervisor::options::Options;
use std::time::Duration;

/// In which way a program is to be protected: by which modules, and what each is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// None: a death is final.
    pub crash: Option<crash::Settings>,
    pub visible: Option<visible::Settings>,
    pub server: Option<server::Settings>,
    pub checkpoint: Option<checkpoint::Settings>,
    pub generations: Option<generations::Settings>,
    pub hang: Option<hang::Settings>,
    /// Functions that are code sections for it.
    pub sections: Vec<String>,
    pub storm: Option<storm::Settings>,
    /// The command that is run when there is one.
    pub alert: Vec<String>,
    pub leaks: Option<leaks::Settings>,
    /// Modules that are loaded from files.
    pub plugins: Vec<plugin::Wish>,
    /// The program has begun: one of these that cannot be had any more is told of, and the others go on.
    pub has_begun: bool,
}

impl Wishes {
    /// What a program that is protected in this way was wished.
    pub fn of(options: &Options) -> Self {
        let is = |bit| options.bits & bit != 0;
        let outputs = if is(option::EACH_OUTPUT) { Visible::Each } else { Visible::Together };
        let every = Duration::from_nanos(options.interval_ns);
        Self {
            crash: options.retries.map(|retries| crash::Settings { retries }),
            visible: (!is(option::NO_VISIBLE)).then_some(visible::Settings { outputs }),
            server: is(option::REPLIES).then_some(server::Settings {}),
            checkpoint: (!every.is_zero()).then_some(checkpoint::Settings { every, sparing: is(option::SPARING) }),
            generations: options.generations.map(|policy| generations::Settings {
                every: Duration::from_nanos(policy.every_ns),
                keep: Duration::from_nanos(policy.keep_ns),
                budget: policy.budget,
            }),
            hang: options.hang,
            sections: options.sections.clone(),
            storm: options.storm,
            alert: options.alert.clone(),
            leaks: options.leaks,
            plugins: options.plugins.clone(),
            has_begun: true,
        }
    }

    /// The modules that protect it.
    pub fn modules(&self) -> Vec<&str> {
        let crash = self.crash.map(|_| crash::NAME);
        let visible = self.visible.map(|_| visible::NAME);
        let server = self.server.map(|_| server::NAME);
        let checkpoint = self.checkpoint.map(|_| checkpoint::NAME);
        let generations = self.generations.map(|_| generations::NAME);
        let hang = self.hang.map(|_| hang::NAME);
        let storm = self.storm.map(|_| storm::NAME);
        let leaks = self.leaks.map(|_| leaks::NAME);
        let built_in = [crash, visible, server, checkpoint, generations, hang, storm, leaks].into_iter().flatten();
        built_in.chain(self.plugins.iter().map(|plugin| &*plugin.name)).collect()
    }

    /// How one of these that are loaded from files was lost to a program that has begun; of others, and before it has, that is an error.
    pub(crate) fn or_lost(&self, module: &str, result: Result<(), Failure>) -> Result<Option<String>, Failure> {
        let Err(failure) = result else { return Ok(None) };
        if !self.plugins.iter().any(|plugin| plugin.name == module) {
            return Err(failure);
        }
        let told = format!("{module}: {failure}");
        if self.has_begun {
            Ok(Some(told))
        } else {
            Err(Failure::Told(told))
        }
    }

    /// Each module, and what it is told.
    pub(crate) fn settings(&self) -> Result<Vec<(&str, Payload)>, Failure> {
        let mut all: Vec<(&str, _)> = Vec::new();
        if let Some(settings) = &self.crash {
            all.push((crash::NAME, Payload::of(settings)?));
        }
        if let Some(settings) = &self.visible {
            all.push((visible::NAME, Payload::of(settings)?));
        }
        if let Some(settings) = &self.server {
            all.push((server::NAME, Payload::of(settings)?));
        }
        if let Some(settings) = &self.checkpoint {
            all.push((checkpoint::NAME, Payload::of(settings)?));
        }
        if let Some(settings) = &self.generations {
            all.push((generations::NAME, Payload::of(settings)?));
        }
        if let Some(settings) = &self.hang {
            all.push((hang::NAME, Payload::of(settings)?));
        }
        if let Some(settings) = &self.storm {
            all.push((storm::NAME, Payload::of(settings)?));
        }
        if let Some(settings) = &self.leaks {
            all.push((leaks::NAME, Payload::of(settings)?));
        }
        for plugin in &self.plugins {
            all.push((&plugin.name, Payload::of(&plugin.settings)?));
        }
        Ok(all)
    }

    /// What this one is told; none: it does not protect the program.
    pub(crate) fn settings_of(&self, module: &str) -> Result<Option<Payload>, Failure> {
        Ok(self.settings()?.into_iter().find(|(name, _)| *name == module).map(|(_, payload)| payload))
    }
}
