//! `server`: what a server replies has no commit before it, and is not sent twice (RMK, §6.2, *custom checkpointing*). In the paper there are
//! two checkpoints in all and a log of one request; here the log holds some, and commits come when it is full.

use outlast_core::{Calls, Event, Failure, Manifest, Module, Payload, PinId};
use outlast_interfaces::server::{Settings, NAME};
use outlast_interfaces::sysc::{self, LogReplies};

pub const MANIFEST: Manifest = Manifest {
    name: NAME,
    what: "replies of a server with no commit before them",
    make: &|| Box::new(Server { sysc: None }),
    budget: crate::BUDGET,
    reloads: 3,
};

struct Server {
    sysc: Option<PinId>,
}

impl Module for Server {
    fn start(&mut self, calls: &mut Calls) -> Result<(), Failure> {
        self.sysc = Some(calls.use_pin(sysc::NAME)?);
        Ok(())
    }

    fn protect(&mut self, calls: &mut Calls, program: &str, settings: &Payload) -> Result<(), Failure> {
        let Settings {} = settings.read()?;
        let Some(sysc) = self.sysc else { return Ok(()) };
        let what = LogReplies { program: program.into() };
        calls.issue_cmd(sysc, sysc::LOG_REPLIES, &Payload::of(&what)?).map(drop)
    }

    fn on_event(&mut self, _: &mut Calls, _: &Event) -> Result<(), Failure> {
        Ok(())
    }
}
