//! Events that threads of any client wait for and trigger.

use std::collections::HashMap;

use outlast_glue_rt::Stop;

use crate::stubs::event::Service;

#[derive(Clone, Copy)]
struct Event {
    /// And not waited for since.
    triggered: bool,
}

#[derive(Clone, Default)]
pub struct Events {
    events: HashMap<u64, Event>,
}

impl Events {
    fn event(&mut self, event: u64) -> Result<&mut Event, Stop> {
        self.events.get_mut(&event).ok_or(Stop::Errno(libc::EBADF))
    }
}

impl Service for Events {
    fn event_split(&mut self, _client: u32, parent: u64, _group: i32, id: u64) -> Result<u64, Stop> {
        if parent != 0 {
            self.event(parent)?;
        }
        self.events.insert(id, Event { triggered: false });
        Ok(id)
    }

    fn event_wait(&mut self, _client: u32, event: u64) -> Result<i32, Stop> {
        match &mut self.event(event)?.triggered {
            triggered @ true => {
                *triggered = false;
                Ok(0)
            }
            false => Err(Stop::Wait { until: None }),
        }
    }

    fn event_trigger(&mut self, _client: u32, event: u64) -> Result<i32, Stop> {
        self.event(event)?.triggered = true;
        Ok(0)
    }

    fn event_free(&mut self, _client: u32, event: u64) -> Result<i32, Stop> {
        self.event(event)?;
        self.events.remove(&event);
        Ok(0)
    }
}
