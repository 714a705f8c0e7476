//! A component: `outlast-service NAME`, started by a manager (`outlast_glue_rt::System`).

use std::process::ExitCode;

use outlast_glue_rt::{run, Resources, Stop};
use outlast_services::{event, fs, lock, stubs, timer};

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let error = match name.as_str() {
        "event" => run(|| stubs::event::Server(event::Events::default())),
        // For tests that show what G0 and G1 are for: the same stubs without them.
        "event-without-g0" => run(|| without_g0::Server(Left(event::Events::default()))),
        "fs-without-g1" => run(|| without_g1::Server(Left(fs::Files::default()))),
        "fs" => run(|| stubs::fs::Server(fs::Files::default())),
        "lock" => run(|| stubs::lock::Server(lock::Locks::default())),
        "timer" => run(|| stubs::timer::Server(timer::Timers::default())),
        _ => {
            eprintln!("outlast-service: expected the name of a service, event, fs, lock or timer; found `{name}`");
            return ExitCode::from(2);
        }
    };
    eprintln!("outlast-service {name}: {error}");
    ExitCode::FAILURE
}

mod without_g0 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/event_without_g0.rs"));
}

mod without_g1 {
    #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/fs_without_g1.rs"));
}

#[derive(Clone)]
struct Left<S>(S);

/// The service is the same whatever is left out of its stubs.
macro_rules! delegate {
    ($to:ident, $stubs:ident, $service:ty; $($function:ident($($name:ident: $ty:ty),*) -> $result:ty;)*) => {
        impl $stubs::Service for Left<$service> {
            $(fn $function(&mut self, $($name: $ty),*) -> Result<$result, Stop> {
                stubs::$to::Service::$function(&mut self.0, $($name),*)
            })*
        }
    };
}

delegate! { event, without_g0, event::Events;
    event_split(client: u32, parent: u64, group: i32, id: u64) -> u64;
    event_wait(client: u32, event: u64) -> i32;
    event_trigger(client: u32, event: u64) -> i32;
    event_free(client: u32, event: u64) -> i32;
}

delegate! { fs, without_g1, fs::Files;
    fs_split(all: &mut Resources, client: u32, parent: u64, name: &[u8], flags: u32, inode: i64, offset: i64) -> (u64, u64);
    fs_read(all: &mut Resources, client: u32, file: u64, most: u32) -> (i32, Vec<u8>, u32);
    fs_write(all: &mut Resources, client: u32, file: u64, data: &[u8]) -> (i32, i64);
    fs_seek(all: &mut Resources, client: u32, file: u64, whence: u32, to: i64) -> (i64, i64);
    fs_truncate(all: &mut Resources, client: u32, file: u64, size: u64) -> i32;
    fs_rename(all: &mut Resources, client: u32, file: u64, name: &[u8]) -> i32;
    fs_remove(all: &mut Resources, client: u32, file: u64) -> i32;
    fs_status(all: &mut Resources, client: u32, file: u64) -> (i32, u64, u32);
    fs_list(all: &mut Resources, client: u32, file: u64, most: u32, skip: u32) -> (i32, Vec<u8>);
    fs_release(all: &mut Resources, client: u32, file: u64) -> i32;
}
