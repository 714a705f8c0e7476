//! Which modules protect a program, and in which way.

use outlast_pins::{Protection, Wishes};
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
    let modules = outlast_modules::all();
    let protection = Protection::new(program, wishes, options, &modules, failures);
    let protection = protection.map_err(|failure| Error::Module(failure.to_string()))?;
    Ok(Box::new(protection))
}
