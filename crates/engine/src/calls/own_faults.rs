//! Calls of a program that serves page faults of its own memory: see [`crate::own_faults`].
//!
//! Nothing of it is seen from outside, and all of it happens to memory: like other calls that map, these are made as they are, and the
//! next commit follows. What the engine cannot keep ends protection: what is shared; events besides page faults; others who serve; faults
//! of the kernel's own in calls of which it is not known what they use.

use crate::commit::commit_before_call;
use crate::dispatch::{native, Call, Outcome};
use crate::native;
use crate::own_faults::{self, context_state, Context, Range, REGISTER_MISSING, REGISTER_WP, TRACKING};
use crate::regions;
use crate::state::{Engine, OwnFd};
use crate::sys::{err, nr, syscall};
use crate::thread::Thread;
use crate::user;
use crate::world;
use outlast_calls::Class;
use outlast_image::degradation::Degradation;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END};
use outlast_image::region::backing;

pub const USERFAULTFD: u64 = 323;
/// The same as a request to /dev/userfaultfd.
pub const USERFAULTFD_IOC_NEW: u64 = 0xaa00;

const UFFDIO_API: u64 = 0xc018_aa3f;
const UFFDIO_REGISTER: u64 = 0xc020_aa00;
const UFFDIO_UNREGISTER: u64 = 0x8010_aa01;
const UFFDIO_COPY: u64 = 0xc028_aa03;
const UFFDIO_ZEROPAGE: u64 = 0xc020_aa04;
const UFFDIO_MOVE: u64 = 0xc028_aa05;
const UFFDIO_WRITEPROTECT: u64 = 0xc018_aa06;
const UFFDIO_POISON: u64 = 0xc020_aa08;

const USER_MODE_ONLY: u64 = 1;
const O_CLOEXEC: u64 = 0o2000000;
/// EVENT_FORK, EVENT_REMAP, EVENT_REMOVE, EVENT_UNMAP; THREAD_ID, by which the kernel knows threads, and not the program; WP_UNPOPULATED, which is
/// not told from what is present; WP_ASYNC, of which there is one, and the engine uses it.
const FEATURES_UNKEPT: u64 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 8 | 1 << 13 | 1 << 15;
const COPY_MODE_WP: u64 = 2;
/// The bit of UFFDIO_WRITEPROTECT among the requests that a range knows.
const KNOWS_WRITEPROTECT: u64 = 1 << 6;

/// userfaultfd, and the request that does the same.
pub fn serve(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let flags = call.args[if call.nr == USERFAULTFD { 0 } else { 2 }];
    // Programs ask whether they may have one, and do without where they may not.
    let fd = native(call);
    if err::is(fd) {
        return fd;
    }
    let is_for_all = flags & USER_MODE_ONLY == 0 && e.tracker.is_kernels();
    let fd = if is_for_all { for_user_mode(fd, flags) } else { fd };
    let state = if flags & USER_MODE_ONLY != 0 { context_state::USER_MODE_ONLY } else { 0 };
    if !e.tracker.is_kernels() || !own_faults::opened(fd as i32, state) {
        // SAFETY: nobody has used it yet.
        unsafe { syscall!(nr::CLOSE, fd) };
        return unprotected(e, t, call);
    }
    e.fds.opened(fd);
    fd
}

/// In the place of one that serves the kernel as well: see [`own_faults::kernel`].
fn for_user_mode(fd: i64, flags: u64) -> i64 {
    // SAFETY: nobody has used it yet.
    unsafe {
        let new = syscall!(nr::USERFAULTFD, flags | USER_MODE_ONLY);
        if !err::is(new) {
            syscall!(nr::DUP3, new, fd, flags & O_CLOEXEC);
            syscall!(nr::CLOSE, new);
        }
    }
    fd
}

/// From here on nobody stands beside the program; it makes the call again.
pub fn unprotected(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    // Nobody may find untouched memory where a page is missing.
    world::stop(t);
    own_faults::give_back(e);
    world::resume();
    native::suspend(Degradation::OwnFaults);
    // What the tracker has is the program's to register.
    e.close_own(OwnFd::Userfault);
    if own_faults::any() {
        // Who waits for messages is to wait for those of the new one.
        native::await_others(t);
    }
    t.regs.rip -= 2;
    call.nr as i64
}

/// Is an ioctl one of those?
pub fn is_request(request: u64) -> bool {
    request >> 8 & 0xff == 0xaa && own_faults::any()
}

/// A request to a userfaultfd.
pub fn request(e: &mut Engine, t: &mut Thread, call: &Call) -> i64 {
    let Some(context) = own_faults::of(call.fd()) else { return issue(call, call.args[2]) };
    match call.args[1] & 0xffff_ffff {
        UFFDIO_API => begin(e, t, call, context),
        UFFDIO_REGISTER => register(e, t, call, context),
        UFFDIO_UNREGISTER => unregister(e, call),
        UFFDIO_COPY => copy(call, tells(&context)),
        UFFDIO_ZEROPAGE => {
            own_faults::zeroes_may_exist();
            issue(call, call.args[2])
        }
        UFFDIO_MOVE => move_pages(e, call),
        UFFDIO_WRITEPROTECT if tells(&context) => {
            own_faults::protection_changed();
            own_faults::compared::protecting_by(call.args[2]);
            issue(call, call.args[2])
        }
        // To the program, nothing is registered for that.
        UFFDIO_WRITEPROTECT => user::read::<[u64; 3]>(call.args[2]).map_or(err::EFAULT, |_| err::ENOENT),
        UFFDIO_POISON => unprotected(e, t, call),
        _ => issue(call, call.args[2]),
    }
}

/// Does it tell the program of writes?
fn tells(context: &Context) -> bool {
    context.state & context_state::TELLS != 0
}

/// Makes the request with what lies at `argument`. The kernel waits for nothing there.
fn issue(call: &Call, argument: u64) -> i64 {
    // SAFETY: the program's own request; what changes in its memory is looked at by the next commit.
    unsafe { syscall!(nr::IOCTL, call.args[0], call.args[1], argument) }
}

fn begin(e: &mut Engine, t: &mut Thread, call: &Call, context: Context) -> i64 {
    let Some([api, features, ioctls]) = user::read::<[u64; 3]>(call.args[2]) else { return err::EFAULT };
    if features & FEATURES_UNKEPT != 0 {
        return unprotected(e, t, call);
    }
    let mut answer = [api, features | TRACKING, ioctls];
    let r = issue(call, answer.as_mut_ptr() as u64);
    if r == 0 {
        own_faults::set(Context { features, state: context.state | context_state::READY, ..context });
    }
    match user::write(call.args[2], &answer) {
        true => r,
        false => err::EFAULT,
    }
}

fn register(e: &mut Engine, t: &mut Thread, call: &Call, mut context: Context) -> i64 {
    let Some([start, len, modes, _]) = user::read::<[u64; 4]>(call.args[2]) else { return err::EFAULT };
    let end = start.saturating_add(len);
    if start < ENGINE_END && end > ENGINE_BASE {
        return err::EINVAL;
    }
    if context.state & context_state::READY == 0 || modes & !7 != 0 || modes == 0 {
        return issue(call, call.args[2]);
    }
    if modes & !(REGISTER_MISSING | REGISTER_WP) != 0 || !is_private(e, start, end) || !own_faults::has_room() {
        return unprotected(e, t, call);
    }
    if e.is_lazy(start, end) {
        own_memory(e, start, end);
    }
    e.cool(start, end);
    e.tracker.leave(start, end);
    if modes & REGISTER_WP != 0 && !tells(&context) {
        world::stop(t);
        let new = own_faults::tell_of_writes(e, context);
        world::resume();
        match new {
            Some(new) => context = new,
            None => return err::ENOMEM,
        }
        // Who waits for messages is to wait for those of the new one.
        world::knock_at_others(t);
    }
    let (mine, compared) = if tells(&context) { (0, own_faults::COMPARED_RANGE) } else { (REGISTER_WP, 0) };
    let mut answer = [start, len, modes | mine, 0];
    let r = issue(call, answer.as_mut_ptr() as u64);
    e.maps_dirty = true;
    if err::is(r) {
        e.tracker.cover_again(start, end);
        return r;
    }
    own_faults::registered(e, Range { start, end, modes: modes | compared, owner: context.inode });
    let hidden = if modes & REGISTER_WP == 0 { KNOWS_WRITEPROTECT } else { 0 };
    match user::write(call.args[2] + 24, &(answer[3] & !hidden)) {
        true => r,
        false => err::EFAULT,
    }
}

/// Is all that is mapped there the process's own, or nothing that the kernel would register?
fn is_private(e: &Engine, start: u64, end: u64) -> bool {
    let mut private = true;
    regions::for_each(regions::read_maps(), (e.kernel.start_brk, e.kernel.brk), |m| {
        let r = m.region;
        let is_own = matches!(r.backing, backing::ANONYMOUS | backing::HEAP | backing::STACK);
        private &= r.end <= start || end <= r.start || is_own;
    });
    private
}

/// To the kernel, what a recovered process maps from the store is a file. What the store has of it is there, also where it is zeroes.
fn own_memory(e: &mut Engine, start: u64, end: u64) {
    if !e.own_pages(start, end) {
        return;
    }
    e.replaced(start, end);
    if let Some(store) = &e.store {
        store.runs(start, end, &mut |at, _, len| {
            (at..at + len).step_by(4096).for_each(|page| {
                user::read_bytes(page, &mut [0]);
            });
        });
    }
}

fn unregister(e: &mut Engine, call: &Call) -> i64 {
    let Some([start, len]) = user::read::<[u64; 2]>(call.args[2]) else { return err::EFAULT };
    let r = issue(call, [start, len].as_ptr() as u64);
    if r == 0 {
        own_faults::released(e, start, start + len);
    }
    r
}

fn copy(call: &Call, tells: bool) -> i64 {
    let at = call.args[2];
    let Some([to, from, len, mode, _]) = user::read::<[u64; 5]>(at) else { return err::EFAULT };
    let mut argument = [to, from, len, mode, 0];
    // To the program, nothing is registered for that.
    let r = if mode & COPY_MODE_WP != 0 && !tells {
        argument[4] = err::EINVAL as u64;
        err::EINVAL
    } else {
        own_faults::content_changed();
        issue(call, argument.as_mut_ptr() as u64)
    };
    give_count(at, argument[4], r)
}

fn move_pages(e: &mut Engine, call: &Call) -> i64 {
    let at = call.args[2];
    let Some([to, from, len, mode, _]) = user::read::<[u64; 5]>(at) else { return err::EFAULT };
    let (from_end, to_end) = (from.saturating_add(len), to.saturating_add(len));
    let is_engine = |start: u64, end: u64| start < ENGINE_END && end > ENGINE_BASE;
    if is_engine(from, from_end) || is_engine(to, to_end) {
        return err::EINVAL;
    }
    if !e.may_drop() {
        commit_before_call(e);
    }
    if e.is_lazy(from, from_end) {
        own_memory(e, from, from_end);
    }
    e.cool(from, from_end);
    let mut argument = [to, from, len, mode, 0];
    let r = issue(call, argument.as_mut_ptr() as u64);
    let moved = (argument[4] as i64).max(0) as u64;
    if moved != 0 {
        e.drop_range(from, from + moved);
        own_faults::content_changed();
    }
    give_count(at, argument[4], r)
}

/// How much was done, or why nothing was. Of a request that it refuses to look into the kernel says neither.
fn give_count(at: u64, count: u64, r: i64) -> i64 {
    match count == 0 || user::write(at + 32, &count) {
        true => r,
        false => err::EFAULT,
    }
}

/// Can what the call does not be kept?
pub fn is_unkept(call: &Call) -> bool {
    own_faults::any() && (hands_over(call) || own_faults::kernel::is_served() && own_faults::kernel::would_wait(call))
}

/// The call has an outcome. Where that is EFAULT, and the kernel would have waited, the call is made again without protection, unless it has
/// taken something.
pub fn served(e: &mut Engine, t: &mut Thread, call: &Call, outcome: Outcome) -> Outcome {
    let takes =
        outlast_calls::row(call.nr).is_none_or(|row| matches!(row.class, Class::Input | Class::Once | Class::Wait));
    match outcome {
        Outcome::Return(err::EFAULT)
            if own_faults::kernel::is_served() && !takes && own_faults::kernel::points_there(call) =>
        {
            Outcome::Return(unprotected(e, t, call))
        }
        outcome => outcome,
    }
}

/// Does the call hand a userfaultfd to somebody who is to serve it?
fn hands_over(call: &Call) -> bool {
    const CONTROL: u64 = 32;
    const MESSAGE: u64 = 64;
    let control = |at: u64| user::read::<[u64; 2]>(at + CONTROL).is_some_and(own_faults::hands_over);
    match call.nr {
        nr::SENDMSG => control(call.args[1]),
        nr::SENDMMSG => (0..call.args[2].min(64)).any(|n| control(call.args[1] + n * MESSAGE)),
        _ => false,
    }
}
