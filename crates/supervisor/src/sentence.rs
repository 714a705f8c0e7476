//! Entries of the log in words.

use crate::log::{Entry, Kind};

impl Entry {
    /// What happened, without the time.
    pub fn sentence(&self) -> String {
        let cause = self.cause.as_deref().unwrap_or("unknown cause");
        let what = match self.event {
            Kind::Start => format!("started: {cause}"),
            Kind::Injected => "protected".into(),
            Kind::OomKilled => format!("killed for lack of memory: {cause}"),
            Kind::Killed => format!("died of {cause}"),
            Kind::Recovered => format!("recovered from {cause}"),
            Kind::Crashed => format!("crashed: {cause}"),
            Kind::Rollback => format!("rolled back after {cause}"),
            Kind::Degradation => format!("cannot preserve: {cause}"),
            Kind::Suspended => format!("protection suspended: {cause}"),
            Kind::Exec => format!("became {cause}"),
            Kind::Resumed => format!("resumed from the store after {cause}"),
            Kind::AnchorRenewed => "made a new anchor".into(),
            Kind::GaveUp => format!("gave up: {cause}"),
            Kind::Exit => format!("ended: {cause}"),
            Kind::PassedOn => format!("its first process ended: {cause}; another one of it goes on in its place"),
            Kind::SupervisorUpgraded => format!("its supervisor is {} now", cause),
            Kind::SupervisorRestarted => "another supervisor took over".into(),
            Kind::EngineError => format!("the engine failed: {cause}"),
            Kind::WentBack => format!("went back to {cause}; what it sent and read since is not undone"),
            Kind::NotKept => format!("cannot keep a generation: {cause}"),
            Kind::ModuleFailed => format!("a module failed: {cause}"),
            Kind::ModuleChanged => cause.into(),
            Kind::Starved => format!("does not get on: {cause}"),
            Kind::ModuleSaid => format!("a module says: {cause}"),
            Kind::Hung => format!("hangs: {cause}"),
            Kind::Forked => format!("began as a copy of {cause}"),
            Kind::Detached => "detached: it runs on without protection".into(),
            Kind::Attached => format!("attached to: {cause}; it stood still"),
            Kind::Leaks => format!("leaks {cause}"),
            Kind::Storm => format!("a storm: {cause}"),
        };
        let phase = self.phase.as_ref().map(|phase| format!(", in phase {phase}")).unwrap_or_default();
        let took = self.duration_us.map(|us| format!(" ({us} µs)")).unwrap_or_default();
        format!("{what}{phase}{took}")
    }
}
