//! The program's end: noted first, so that a kill within it is not taken for a failure.

use crate::calls::{notifications, thread_end};
use crate::control::control;
use crate::dispatch::{native, Call, Outcome};
use crate::shared_memory;
use crate::state::Engine;
use crate::thread::Thread;
use crate::undo;
use core::sync::atomic::Ordering::*;
use outlast_image::control::state;

pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> Outcome {
    if thread_end::is_one_of_several(call) {
        thread_end::end(t, call.args[0]);
    }
    shared_memory::give_back(e);
    undo::settle(e);
    notifications::end(e);
    let c = control();
    c.exit_code.store(call.args[0] as i32, Release);
    c.state.store(state::EXITING, Release);
    Outcome::Return(native(call))
}
