//! Modules that are added and removed, and told otherwise, while the program runs.

use crate::protection::{install, Protection};
use crate::wishes::Wishes;
use outlast_core::Failure;
use outlast_image::inject::option;
use outlast_interfaces::change::{Added, Change};
use outlast_interfaces::{checkpoint, crash, generations, hang, leaks, server, storm, visible};
use outlast_supervisor::decision::Changed;
use outlast_supervisor::options::Options;

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

/// The module that a change is about; of a pin that is the pin.
fn module_of(change: &Change) -> &str {
    match change {
        Change::Remove(name) | Change::Uninstall(name) | Change::Install(name) => name,
        Change::Add(Added::Plugin { name, .. }) => name,
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

impl Protection {
    /// Does what a person wishes, or leaves everything as it is and says why.
    pub(crate) fn change_as_wished(&mut self, change: &Change, options: &Options) -> Result<Changed, String> {
        let (module, before) = (module_of(change), Wishes::of(options));
        let told_before = before.words(module);
        let after = match change {
            Change::Uninstall(pin) => return self.uninstall(pin, options),
            Change::Install(pin) => return self.install_again(pin, options),
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
        self.get_from_file(&after, module)?;
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
                if told_before.is_none() && after.plugins.iter().any(|plugin| plugin.name == module) {
                    self.forget_file(module);
                }
                return Err(told.err().map_or(failure.to_string(), |worse| format!("{failure}; and {worse}")));
            }
        };
        if let (Change::Remove(_), true) = (change, before.plugins.iter().any(|plugin| plugin.name == module)) {
            self.forget_file(module);
        }
        let told = after.words(module);
        let what = match (told_before, told) {
            (None, Some(now)) => format!("{module} protects it: {now}"),
            (Some(before), None) => format!("{module} protects it no longer: {before} before"),
            (Some(before), Some(now)) if before != now => format!("{module}: {now}, {before} before"),
            _ => String::new(),
        };
        Ok(Changed { options: chosen, what })
    }

    /// Has a module that is loaded from a file at hand, if it is one and is not loaded: as the file is now.
    fn get_from_file(&mut self, wishes: &Wishes, module: &str) -> Result<(), String> {
        let Some(plugin) = wishes.plugins.iter().find(|plugin| plugin.name == module) else { return Ok(()) };
        if self.kernel.modules().any(|(manifest, _)| manifest.name == module) {
            return Ok(());
        }
        let manifest = (self.from_file)(plugin)?;
        self.manifests.retain(|known| known.name != module);
        self.manifests.push(manifest);
        Ok(())
    }

    /// Lets go of one that protects the program no longer.
    fn forget_file(&mut self, module: &str) {
        // One that has failed is not loaded.
        let _ = self.kernel.unload(module);
        self.manifests.retain(|known| known.name != module);
    }

    /// Takes a pin away. Modules that would use it and protect nothing are unloaded, and loaded again when they are to.
    fn uninstall(&mut self, pin: &str, options: &Options) -> Result<Changed, String> {
        let protects = |name: &&str| self.kernel.modules().any(|(known, of)| known.name == *name && !of.is_empty());
        let users = self.kernel.users_of(pin);
        let needed: Vec<_> = users.iter().copied().filter(|name| protects(name)).collect();
        if !needed.is_empty() {
            return Err(Failure::PinUsed(pin.into(), needed.join(", ")).to_string());
        }
        for module in users {
            self.kernel.unload(module).map_err(|failure| failure.to_string())?;
        }
        self.kernel.uninstall_pin(pin).map_err(|failure| match failure {
            Failure::NoSuchPin(_) if options.without_pins.iter().any(|gone| gone == pin) => {
                format!("the pin {pin} is uninstalled already")
            }
            failure => failure.to_string(),
        })?;
        let mut options = options.clone();
        options.without_pins.push(pin.into());
        Ok(Changed { options, what: format!("the pin {pin} is uninstalled") })
    }

    fn install_again(&mut self, pin: &str, options: &Options) -> Result<Changed, String> {
        if self.kernel.pins().any(|(interface, _)| interface.name == pin) {
            return Err(format!("the pin {pin} is installed"));
        }
        if !install(&mut self.kernel, &self.desk, |name| name == pin) {
            return Err(format!("a program has no pin called {pin}; `outlast pin list` has all"));
        }
        let mut options = options.clone();
        options.without_pins.retain(|gone| gone != pin);
        Ok(Changed { options, what: format!("the pin {pin} is installed") })
    }

    /// All modules are told what these options say, and all pins are there but those that these do without.
    pub(crate) fn restore_all(&mut self, options: &Options) -> Result<(), String> {
        let is_known = |name| self.kernel.pins().any(|(interface, _)| interface.name == name);
        let known = crate::protection::names().map(|name| (name, is_known(name))).collect::<Vec<_>>();
        for (name, is_known) in known {
            match (is_known, options.without_pins.iter().any(|gone| gone == name)) {
                (true, true) => drop(self.uninstall(name, options)?),
                (false, false) => drop(install(&mut self.kernel, &self.desk, |pin| pin == name)),
                _ => (),
            }
        }
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
