//! Services behind stubs that something is left out of: a recovery mechanism, or all tracking. They are the same services.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use outlast_glue_rt::{Lent, Resources, Stop};
use outlast_services::stubs::untracked;
use outlast_services::{event, fs, lock, memory, scheduler, stubs, timer};

pub mod without_g0 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/event_without_g0.rs"));
}

pub mod without_g1 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/fs_without_g1.rs"));
}

pub mod memory_without_d0 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/memory_without_d0.rs"));
}

pub mod scheduler_without_g1 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/scheduler_without_g1.rs"));
}

#[derive(Clone)]
pub struct Left<S>(pub S);

/// The service is the same whatever is left out of its stubs.
macro_rules! delegate {
    ($to:ident, $service:ty, [$($stubs:path),*]; $functions:tt) => {
        $(delegate! { one, $to, $service, $stubs, $functions })*
    };
    (one, $to:ident, $service:ty, $stubs:path, { $($function:ident($($name:ident: $ty:ty),*) -> $result:ty;)* }) => {
        impl $stubs for Left<$service> {
            $(fn $function(&mut self, $($name: $ty),*) -> $result {
                stubs::$to::Service::$function(&mut self.0, $($name),*)
            })*
        }
    };
}

delegate! { event, event::Events, [without_g0::Service, untracked::event::Service]; {
    event_split(client: u32, parent: u64, group: i32, id: u64) -> Result<u64, Stop>;
    event_wait(client: u32, event: u64) -> Result<i32, Stop>;
    event_trigger(client: u32, event: u64) -> Result<i32, Stop>;
    event_free(client: u32, event: u64) -> Result<i32, Stop>;
}}

delegate! { fs, fs::Files, [without_g1::Service, untracked::fs::Service]; {
    fs_split(all: &mut Resources, client: u32, parent: u64, name: &[u8], flags: u32, inode: i64, offset: i64) -> Result<(u64, u64), Stop>;
    fs_read(all: &mut Resources, client: u32, file: u64, most: u32) -> Result<(i32, Vec<u8>, u32), Stop>;
    fs_write(all: &mut Resources, client: u32, file: u64, data: &[u8]) -> Result<(i32, i64), Stop>;
    fs_get(all: &mut Resources, client: u32, file: u64, data: &mut Lent<'_>, most: u32) -> Result<(i32, u32), Stop>;
    fs_put(all: &mut Resources, client: u32, file: u64, data: &mut Lent<'_>, length: u32) -> Result<(i32, i64), Stop>;
    fs_seek(all: &mut Resources, client: u32, file: u64, whence: u32, to: i64) -> Result<(i64, i64), Stop>;
    fs_truncate(all: &mut Resources, client: u32, file: u64, size: u64) -> Result<i32, Stop>;
    fs_rename(all: &mut Resources, client: u32, file: u64, name: &[u8]) -> Result<i32, Stop>;
    fs_remove(all: &mut Resources, client: u32, file: u64) -> Result<i32, Stop>;
    fs_status(all: &mut Resources, client: u32, file: u64) -> Result<(i32, u64, u32), Stop>;
    fs_list(all: &mut Resources, client: u32, file: u64, most: u32, skip: u32) -> Result<(i32, Vec<u8>), Stop>;
    fs_release(all: &mut Resources, client: u32, file: u64) -> Result<i32, Stop>;
}}

delegate! { memory, memory::Pages, [memory_without_d0::Service, untracked::memory::Service]; {
    mem_get(client: u32, count: u32, memory: Option<Arc<OwnedFd>>, id: u64) -> Result<(u64, Arc<OwnedFd>), Stop>;
    mem_alias(client: u32, of: u64, to: u32, rights: u32, memory: Option<Arc<OwnedFd>>, id: u64) -> Result<u64, Stop>;
    mem_map(client: u32, page: u64) -> Result<(i32, u32, u32, Arc<OwnedFd>), Stop>;
    mem_revoke(client: u32, page: u64) -> Result<i32, Stop>;
    mem_who(client: u32) -> Result<u32, Stop>;
    held(client: u32, page: u64) -> Result<Vec<(u32, u64)>, Stop>;
}}

delegate! { scheduler, scheduler::Threads, [scheduler_without_g1::Service, untracked::scheduler::Service]; {
    sched_create(all: &mut Resources, client: u32, priority: u32, id: u64) -> Result<u64, Stop>;
    sched_block(all: &mut Resources, client: u32, thread: u64, until: u64) -> Result<i32, Stop>;
    sched_wakeup(all: &mut Resources, client: u32, thread: u64) -> Result<i32, Stop>;
    sched_take(all: &mut Resources, client: u32, thread: u64) -> Result<i32, Stop>;
    sched_release(all: &mut Resources, client: u32, thread: u64) -> Result<i32, Stop>;
    sched_priority(all: &mut Resources, client: u32, thread: u64, priority: u32) -> Result<i32, Stop>;
    sched_waits(all: &mut Resources, client: u32, thread: u64) -> Result<i32, Stop>;
    sched_free(all: &mut Resources, client: u32, thread: u64) -> Result<i32, Stop>;
    woken() -> Vec<u64>;
}}

delegate! { lock, lock::Locks, [untracked::lock::Service]; {
    lock_alloc(client: u32) -> Result<u64, Stop>;
    lock_pretake(client: u32, lock: u64, thread: u32) -> Result<i32, Stop>;
    lock_take(client: u32, lock: u64, thread: u32) -> Result<i32, Stop>;
    lock_release(client: u32, lock: u64, thread: u32) -> Result<i32, Stop>;
    lock_free(client: u32, lock: u64) -> Result<i32, Stop>;
}}

delegate! { timer, timer::Timers, [untracked::timer::Service]; {
    timer_create(client: u32, start: u64, period: u64, waited: i64) -> Result<u64, Stop>;
    timer_wait(client: u32, timer: u64) -> Result<(i32, u32), Stop>;
    timer_remove(client: u32, timer: u64) -> Result<i32, Stop>;
}}
