//! The call that the commit stands before: done by the predecessor, or done now.

use crate::calls;
use crate::dispatch::{interruptible, Call, Outcome};
use crate::gathered;
use crate::inputs;
use crate::medium;
use crate::noted;
use crate::operation::Operation;
use crate::own_faults;
use crate::own_files;
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::thread::Thread;
use crate::unnamed;
use outlast_calls::Class;
use outlast_image::context::{pending_kind, PendingCall};
use outlast_image::pending::operation_id;

/// Looks for the predecessor's traces, before the new ring overwrites them.
pub fn lookup(e: &mut Engine, pending: &PendingCall) -> Operation {
    let seq = e.store().seq();
    if let Some(words) = medium::load_witness(e, seq) {
        noted::recall(operation_id(seq, 0), pending.args[0] as i32, &words);
    }
    let operation =
        if is_operation(pending.kind) { Operation::resumed(e, seq, pending.offset) } else { Operation::new(seq) };
    inputs::recover(e);
    operation
}

fn is_operation(kind: u32) -> bool {
    matches!(kind, pending_kind::RING | pending_kind::NOTED | pending_kind::GATHERED)
}

/// Did the predecessor do all of it? An output that has more to send may have to wait.
pub fn is_done(pending: &PendingCall, operation: &Operation) -> bool {
    operation.was_found() && class_of(pending.nr as u64) != Some(Class::Output)
}

fn class_of(nr: u64) -> Option<Class> {
    outlast_calls::row(nr).map(|r| r.class)
}

/// Gives the program the call's result. Unless the call [`is_done`], signals of the program may end it as they may end any
/// call, and a death meanwhile is one of a program that runs.
/// `cold`: the descriptors of the dead are gone.
pub fn finish(e: &mut Engine, t: &mut Thread, pending: &PendingCall, operation: &mut Operation, cold: bool) {
    let call = Call { nr: pending.nr as u64, args: pending.args };
    if cold && calls::names::opens(&call) {
        if let Some(fd @ 0..) = operation.take_found() {
            let fd = calls::names::open_again(e, &call, fd);
            own_files::after(e, &call, fd, None);
            t.regs.rax = fd as u64;
            return;
        }
    }
    let change = own_files::before(e, &call);
    let r = match pending.kind {
        pending_kind::NONE => return,
        pending_kind::GATHERED => return gathered::finish(e, operation),
        pending_kind::RING | pending_kind::NOTED => operate(e, t, &call, pending.kind, operation),
        pending_kind::PART => calls::output::go_on(e, t, pending),
        pending_kind::OFFSET => calls::write_file::finish_append(&call, pending),
        pending_kind::EXEC | pending_kind::SPAWN => {
            let made = match pending.kind {
                pending_kind::EXEC => calls::exec::serve(e, t, &call),
                _ => calls::spawn::again(e, t, &call),
            };
            match made {
                Outcome::Return(r) => r,
                Outcome::Registers => return,
            }
        }
        _ => again(e, t, &call),
    };
    own_files::after(e, &call, r, change);
    medium::note(e, &call, r);
    t.regs.rax = r as u64;
    if is_operation(pending.kind) && matches!(r, err::EAGAIN) {
        // A blocking call that found nothing after all: the program issues it again.
        t.regs.rip -= 2;
        t.regs.rax = call.nr;
    }
}

fn operate(e: &mut Engine, t: &mut Thread, call: &Call, kind: u32, operation: &mut Operation) -> i64 {
    match class_of(call.nr) {
        Some(Class::Input) => calls::input::finish(e, t, call, operation),
        Some(Class::Output) => calls::output::finish(e, t, call, operation),
        _ if calls::queues::moves(call.nr) => calls::queues::finish(e, t, call, operation),
        _ if calls::objects::makes(call) => calls::objects::finish(e, call, operation),
        _ if kind == pending_kind::NOTED || !e.ring.available() => noted::names::finish(e, t, call, operation),
        _ => calls::names::finish(e, t, call, operation),
    }
}

/// Issues the call again; it is idempotent, or nothing better is known.
fn again(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    if matches!(call.nr, nr::DUP2 | nr::DUP3) && !calls::descriptors::make_way(e, call.args[1] as i32) {
        return err::EBADF;
    }
    calls::offsets::note_moved(e, call);
    if calls::inherited::is_one(call) {
        return calls::inherited::change(e, t, call);
    }
    if calls::contexts::submits(call) {
        return calls::contexts::make(e, t, call);
    }
    if call.nr == calls::notifications::MQ_NOTIFY {
        return calls::notifications::make(e, call, true);
    }
    if calls::groups::sets(call) {
        return calls::groups::make(e, call);
    }
    if calls::groups::puts_in_front(call) {
        return calls::groups::put_in_front(e, t, call);
    }
    if calls::inheriting::is_one(call) {
        return calls::inheriting::again(t, call);
    }
    if call.nr == nr::CLOSE_RANGE {
        let r = calls::descriptors::close_range_now(e, call);
        own_faults::settle(e);
        return r;
    }
    if call.nr == nr::CONNECT && noted::witness::is_connected(call.fd()) {
        // The predecessor's came about. Issued again it would wait for room at the listener, which may never come.
        return 0;
    }
    if calls::signals::sends(call) {
        return calls::signals::send_again(t, call);
    }
    let r = interruptible(t, call);
    match call.nr {
        nr::CLOSE => {
            calls::descriptors::gone(e, call.fd());
            own_faults::settle(e);
            // Already closed by the predecessor.
            return if r == err::EBADF { 0 } else { r };
        }
        nr::TIMERFD_SETTIME => unnamed::changed(e, call.fd()),
        nr::FCNTL => e.fds.file_marked(call.fd()),
        nr::DUP2 | nr::DUP3 => {
            e.fds.opened_as(r, call.fd());
            own_faults::settle(e);
        }
        nr if calls::queues::is_one(nr) => return calls::queues::repeated(e, call, r),
        nr if calls::segments::is_one(nr) => return calls::segments::repeated(e, call, r),
        nr::INOTIFY_ADD_WATCH | nr::INOTIFY_RM_WATCH => {
            // Removed by the predecessor.
            let r = if call.nr == nr::INOTIFY_RM_WATCH && r == err::EINVAL { 0 } else { r };
            calls::watches::note(e, call, r);
            return r;
        }
        calls::epoll::EPOLL_CTL => return calls::epoll::repeated(e, call, r),
        nr if matches!(class_of(nr), Some(Class::Object | Class::Unknown) | None) => e.fds.returned(r),
        _ => {}
    }
    r
}
