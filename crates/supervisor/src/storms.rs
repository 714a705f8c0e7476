//! Storms: a module says when a program is recovered too often, and this is who is told then.

use crate::alert::alert;
use crate::log::{Entry, Kind};
use crate::supervisor::Supervisor;
use std::time::Duration;

impl Supervisor {
    /// Tells the modules of a recovery at this moment of the monotonic clock, and a person of a storm.
    pub(crate) fn note_recovery(&mut self, at_ns: u64) {
        self.beware_of_modules();
        let storm = self.decides.recovered(Duration::from_nanos(at_ns));
        self.log_failures();
        let Some(storm) = storm else { return };
        let window = humantime::format_duration(storm.within);
        let cause = format!("{} recoveries within {window}", storm.recoveries);
        self.log.add(&Entry::new(Kind::Storm).cause(&*cause).pid(self.pid));
        let name = self.folder.name();
        let variables = [
            ("NAME", name.to_string()),
            ("EVENT", "storm".into()),
            ("CAUSE", cause),
            ("RECOVERIES", storm.recoveries.to_string()),
            ("WINDOW", storm.within.as_secs_f64().to_string()),
            ("PID", self.pid.to_string()),
            ("STATE_DIR", self.folder.path().parent().unwrap_or(self.folder.path()).display().to_string()),
        ];
        if let Err(e) = alert(&self.meta.options.alert, &variables, self.meta.oom_score) {
            let cause = format!("storm: cannot begin the command of the alert: {e}");
            self.log.add(&Entry::new(Kind::ModuleFailed).cause(cause).pid(self.pid));
        }
    }
}
