//! Settings of the module `hang`, for programs and for components.

use serde::{Deserialize, Serialize};
use std::time::Duration;

pub const NAME: &str = "hang";

/// For one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// How often its threads are looked at.
    pub every: Duration,
    /// No section is flagged that has computed for less. The paper's threshold against trivial cases (§5.1).
    pub threshold: Duration,
    /// A section that has computed for more is flagged, also one that nothing is known of yet; none: only what is known can be too long.
    pub limit: Option<Duration>,
    /// A thread that could run and gets no processor for so long is told of. The paper's time-out for threads that are not scheduled (§5.1).
    #[serde(default = "unscheduled")]
    pub unscheduled: Duration,
}

/// For one component, whose calls have ends: by them, and not by what its threads compute, it is seen to hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfComponent {
    /// A call that is under way is flagged if no call has ended for so long, and one that waited if it was to go on so long ago. Too
    /// early a verdict costs a micro-reboot that nobody sees.
    pub still: Duration,
    /// It is flagged after so long, too, if others have ended: it may only have to wait for its turn.
    pub alone: Duration,
}

/// What holds unless a manager says otherwise.
pub const USUAL: OfComponent = OfComponent { still: Duration::from_secs(2), alone: Duration::from_secs(10) };

impl OfComponent {
    /// How often calls are looked at.
    pub fn every(self) -> Duration {
        (self.still.min(self.alone) / 4).max(Duration::from_millis(1))
    }
}

/// As in the paper.
fn unscheduled() -> Duration {
    Duration::from_secs(5)
}

impl Settings {
    /// What `outlast run --hang` means, with or without a limit.
    pub fn with_limit(limit: Option<Duration>) -> Self {
        let every = Duration::from_millis(250);
        // A limit is looked at several times before it is over.
        let every = limit.map_or(every, |limit| every.min(limit / 4)).max(Duration::from_millis(10));
        let threshold = Duration::from_secs(1);
        let unscheduled = limit.unwrap_or_else(unscheduled).max(threshold);
        Self { every, threshold, limit, unscheduled }
    }
}
