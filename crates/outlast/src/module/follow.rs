//! What the daemon has done as the user of programs that policies designate, when policies were read again.

use crate::designation;
use crate::output;
use clap::Args;
use outlast_daemon::Running;
use outlast_pins::Wishes;
use outlast_supervisor::meta::Meta;
use outlast_supervisor::say::say;
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::{status, wishing, Error};

/// List the programs that run because policies have designated them
#[derive(Args)]
pub struct Designated {}

/// Have a program's modules protect it as a policy says
#[derive(Args)]
pub struct Follow {
    program: String,
    /// Options of `outlast run`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    settings: Vec<String>,
}

impl Designated {
    pub fn execute(self) -> Result<i32, Error> {
        // Nobody is to be watched by the daemon's children.
        let state = StateFolder::open()?;
        let running = status::all(&state)?.into_iter().filter(|program| program.ended.is_none() && program.protected);
        let designated = |program: status::Status| {
            let meta = Meta::read(&state.program(&program.name).ok()?).ok()?;
            let (executable, policy) = (meta.designated?.to_path(), meta.policy.map(|policy| policy.to_path()));
            Some(Running { name: program.name, pid: program.pid?, executable, policy })
        };
        let all: Vec<Running> = running.filter_map(designated).collect();
        output::json(&all)
    }
}

impl Follow {
    pub fn execute(self) -> Result<i32, Error> {
        let how = match designation::how(&self.settings) {
            Ok(how) => how,
            Err(why) => {
                say(format_args!("{why}"));
                return Ok(2);
            }
        };
        let folder = StateFolder::open()?.program(&self.program)?;
        let options = Meta::read(&folder)?.options;
        let changes = Wishes::of(&options).towards(&how.wishes());
        changes.iter().try_for_each(|change| wishing::ask(&folder, change).map(drop)).map(|()| 0)
    }
}
