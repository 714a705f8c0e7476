//! A call from one processor to a component on another, where both sides look for what comes before they sleep.

use outlast_glue_rt::Request;
use outlast_services::stubs::lock::operation;

use crate::clock::{each, Table};
use crate::locks::raw_lock;
use crate::pipe::Pipe;
use crate::services::component;
use crate::stay_on;

const CALLS: u32 = 20_000;
/// Longer than any call takes.
const TURNS: u32 = 100_000;

/// None where there is one processor.
pub fn measure(rounds: u32) -> Option<String> {
    let processors = allowed();
    let (&here, &there) = (processors.first()?, processors.get(1)?);
    // What is started there stays there.
    stay_on(there);
    let (_system, handle) = component("lock");
    let mut pipe = Pipe::new();
    stay_on(here);
    let channel = handle.grant().expect("a channel").open().expect("a channel");
    channel.spin(TURNS);
    let lock = raw_lock(&channel);
    let call = || {
        let (epoch, words) = (channel.epoch(), &[lock, 1][..]);
        let request = Request { operation: operation::LOCK_PRETAKE, epoch, words, ..Request::default() };
        drop(channel.call(&request).expect("a reply"));
    };
    let mut table = Table::new(&["pipe round trip between processors", "call between processors, spinning"]);
    for _ in 0..rounds {
        table.note(0, each(CALLS / 10, || pipe.round_trip()));
        table.note(1, each(CALLS, call));
    }
    Some(table.text(rounds))
}

/// Processors that this process may run on.
fn allowed() -> Vec<usize> {
    // SAFETY: a zeroed set is valid, and filled in by the call.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        (0..libc::CPU_SETSIZE as usize).filter(|processor| libc::CPU_ISSET(*processor, &set)).collect()
    }
}
