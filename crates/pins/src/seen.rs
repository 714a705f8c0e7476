//! One look at a program by a pin, and the event that tells of it.

use crate::{file as files, ipc as pipes, mem as memory, net as connections};
use outlast_core::Payload;
use outlast_interfaces::watch::Look;
use outlast_interfaces::{file, ipc, mem, net};
use outlast_supervisor::clock;
use outlast_supervisor::decision::{Process, Wait};
use std::time::Duration;

pub struct Sight {
    pub pin: &'static str,
    pub event: &'static str,
    pub payload: Payload,
}

/// None: there is nothing to be seen, as the process is just ending.
pub fn seen(pin: &str, process: &Process, waits: &dyn Fn() -> Vec<(i32, Wait)>) -> Option<Sight> {
    let look = Look { at: Duration::from_nanos(clock::monotonic()), process: process.pid, life: process.life };
    let (pin, event, payload) = match pin {
        file::NAME => (file::NAME, file::COUNTED, Payload::of(&files::count(process, look))),
        mem::NAME => (mem::NAME, mem::MEASURED, Payload::of(&memory::measure(process.pid, look)?)),
        net::NAME => (net::NAME, net::MEASURED, Payload::of(&connections::measure(process, look))),
        ipc::NAME => (ipc::NAME, ipc::MEASURED, Payload::of(&pipes::measure(process, look, waits()))),
        _ => return None,
    };
    Some(Sight { pin, event, payload: payload.ok()? })
}
