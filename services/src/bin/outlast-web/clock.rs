//! The thread that a periodic timer wakes: it ends connections whose time is over, and writes the log.

use std::time::{Duration, Instant};

use outlast_services::timer::now;

use crate::failure::Failure;
use crate::front::{Front, CLOCK};

const PERIOD: Duration = Duration::from_millis(250);

pub fn run(front: &Front) -> Result<(), Failure> {
    let timer = front.timers.timer_create(now(), PERIOD.as_nanos() as u64)?;
    loop {
        front.timers.timer_wait(timer)?;
        front.change(CLOCK, |table| table.expire(Instant::now()))?;
        if let Some(log) = &front.log {
            log.with(&front.locks, CLOCK, |log| log.flush())??;
        }
        front.resume()?;
    }
}
