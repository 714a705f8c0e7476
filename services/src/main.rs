//! A component: `outlast-service NAME`, started by a manager (`outlast_glue_rt::System`). `outlast-service NAME OPERATION POINT FILE`
//! fails once, at that point of a call of that operation, when it can remove the file.

use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;

use outlast_glue_rt::{run, Component, Resources, Stop};
use outlast_services::faulty::Faulty;
use outlast_services::{event, fs, lock, memory, scheduler, stubs, timer};

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let error = match name.as_str() {
        "event" => serve(|| stubs::event::Server(event::Events::default())),
        // For tests that show what G0 and G1 are for: the same stubs without them.
        "event-without-g0" => serve(|| without_g0::Server(Left(event::Events::default()))),
        "fs-without-g1" => serve(|| without_g1::Server(Left(fs::Files::default()))),
        "fs" => serve(|| stubs::fs::Server(fs::Files::default())),
        "lock" => serve(|| stubs::lock::Server(lock::Locks::default())),
        "memory" => serve(|| stubs::memory::Server(memory::Pages::default())),
        "memory-without-d0" => serve(|| memory_without_d0::Server(Left(memory::Pages::default()))),
        "scheduler" => serve(|| stubs::scheduler::Server(scheduler::Threads::default())),
        "scheduler-without-g1" => serve(|| scheduler_without_g1::Server(Left(scheduler::Threads::default()))),
        "timer" => serve(|| stubs::timer::Server(timer::Timers::default())),
        _ => {
            eprintln!(
                "outlast-service: expected the name of a service, event, fs, lock, memory, scheduler or timer; found `{name}`"
            );
            return ExitCode::from(2);
        }
    };
    eprintln!("outlast-service {name}: {error}");
    ExitCode::FAILURE
}

fn serve<C: Component + Clone>(boot: impl FnOnce() -> C) -> std::io::Error {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    run(|| Faulty::new(boot(), &arguments))
}

mod without_g0 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/event_without_g0.rs"));
}

mod without_g1 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/fs_without_g1.rs"));
}

mod memory_without_d0 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/memory_without_d0.rs"));
}

mod scheduler_without_g1 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/scheduler_without_g1.rs"));
}

#[derive(Clone)]
struct Left<S>(S);

/// The service is the same whatever is left out of its stubs.
macro_rules! delegate {
    ($to:ident, $stubs:ident, $service:ty; $($function:ident($($name:ident: $ty:ty),*) -> $result:ty;)*) => {
        impl $stubs::Service for Left<$service> {
            $(fn $function(&mut self, $($name: $ty),*) -> $result {
                stubs::$to::Service::$function(&mut self.0, $($name),*)
            })*
        }
    };
}

delegate! { event, without_g0, event::Events;
    event_split(client: u32, parent: u64, group: i32, id: u64) -> Result<u64, Stop>;
    event_wait(client: u32, event: u64) -> Result<i32, Stop>;
    event_trigger(client: u32, event: u64) -> Result<i32, Stop>;
    event_free(client: u32, event: u64) -> Result<i32, Stop>;
}

delegate! { fs, without_g1, fs::Files;
    fs_split(all: &mut Resources, client: u32, parent: u64, name: &[u8], flags: u32, inode: i64, offset: i64) -> Result<(u64, u64), Stop>;
    fs_read(all: &mut Resources, client: u32, file: u64, most: u32) -> Result<(i32, Vec<u8>, u32), Stop>;
    fs_write(all: &mut Resources, client: u32, file: u64, data: &[u8]) -> Result<(i32, i64), Stop>;
    fs_seek(all: &mut Resources, client: u32, file: u64, whence: u32, to: i64) -> Result<(i64, i64), Stop>;
    fs_truncate(all: &mut Resources, client: u32, file: u64, size: u64) -> Result<i32, Stop>;
    fs_rename(all: &mut Resources, client: u32, file: u64, name: &[u8]) -> Result<i32, Stop>;
    fs_remove(all: &mut Resources, client: u32, file: u64) -> Result<i32, Stop>;
    fs_status(all: &mut Resources, client: u32, file: u64) -> Result<(i32, u64, u32), Stop>;
    fs_list(all: &mut Resources, client: u32, file: u64, most: u32, skip: u32) -> Result<(i32, Vec<u8>), Stop>;
    fs_release(all: &mut Resources, client: u32, file: u64) -> Result<i32, Stop>;
}

delegate! { memory, memory_without_d0, memory::Pages;
    mem_get(client: u32, count: u32, memory: Option<Arc<OwnedFd>>, id: u64) -> Result<(u64, Arc<OwnedFd>), Stop>;
    mem_alias(client: u32, of: u64, to: u32, rights: u32, memory: Option<Arc<OwnedFd>>, id: u64) -> Result<u64, Stop>;
    mem_map(client: u32, page: u64) -> Result<(i32, u32, u32, Arc<OwnedFd>), Stop>;
    mem_revoke(client: u32, page: u64) -> Result<i32, Stop>;
    mem_who(client: u32) -> Result<u32, Stop>;
    held(client: u32, page: u64) -> Result<Vec<(u32, u64)>, Stop>;
}

delegate! { scheduler, scheduler_without_g1, scheduler::Threads;
    sched_create(all: &mut Resources, client: u32, priority: u32, id: u64) -> Result<u64, Stop>;
    sched_block(all: &mut Resources, client: u32, thread: u64, until: u64) -> Result<i32, Stop>;
    sched_wakeup(all: &mut Resources, client: u32, thread: u64) -> Result<i32, Stop>;
    sched_take(all: &mut Resources, client: u32, thread: u64) -> Result<i32, Stop>;
    sched_release(all: &mut Resources, client: u32, thread: u64) -> Result<i32, Stop>;
    sched_priority(all: &mut Resources, client: u32, thread: u64, priority: u32) -> Result<i32, Stop>;
    sched_waits(all: &mut Resources, client: u32, thread: u64) -> Result<i32, Stop>;
    sched_free(all: &mut Resources, client: u32, thread: u64) -> Result<i32, Stop>;
    woken() -> Vec<u64>;
}
