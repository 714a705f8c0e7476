//! Which modules protect a program, and in which way.

use crate::installed;
use outlast_core::Manifest;
use outlast_interfaces::plugin;
use outlast_pins::{Protection, Wishes};
use outlast_plugins::Compiled;
use outlast_supervisor::decision::Decides;
use outlast_supervisor::options::Options;
use outlast_supervisor::Error;

/// For a program that is started now.
pub fn start(wishes: &Wishes) -> impl Fn(&str, &mut Options) -> Result<Box<dyn Decides>, Error> + '_ {
    |program, options| load(program, wishes, options, &[])
}

/// For one that was started in the past, and is protected as it was then. `failures`: how modules failed before this process began
/// anew.
pub fn go_on(failures: &[String]) -> impl Fn(&str, &mut Options) -> Result<Box<dyn Decides>, Error> + '_ {
    move |program, options| load(program, &Wishes::of(options), options, failures)
}

fn load(program: &str, wishes: &Wishes, options: &mut Options, failures: &[String]) -> Result<Box<dyn Decides>, Error> {
    let (mut modules, mut wishes, mut lacks) = (outlast_modules::all().to_vec(), wishes.clone(), Vec::new());
    for plugin in std::mem::take(&mut wishes.plugins) {
        match from_file(&plugin) {
            Ok(manifest) => {
                modules.push(manifest);
                wishes.plugins.push(plugin);
            }
            Err(why) if wishes.has_begun => lacks.push(format!("{}: {why}", plugin.name)),
            Err(why) => return Err(Error::Plugin(plugin.name, why)),
        }
    }
    let protection = Protection::new(program, &wishes, options, &modules, failures);
    let mut protection = protection.map_err(|failure| Error::Module(failure.to_string()))?;
    protection.load_by(from_file);
    lacks.into_iter().for_each(|what| protection.lacks(what));
    Ok(Box::new(protection))
}

fn from_file(plugin: &plugin::Wish) -> Result<Manifest, String> {
    let compiled = Compiled::of(&installed::contents(&plugin.file)?).map_err(|e| e.to_string())?;
    Ok(outlast_plugins::manifest(&plugin.name, &plugin.file.display().to_string(), compiled))
}
