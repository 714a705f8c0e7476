//! System services as components that can be micro-rebooted. `interfaces` says what each offers; its stubs, with the code
//! that recovers its clients' descriptors, are written by glue when this is built.

pub mod by_hand;
pub mod event;
pub mod faulty;
pub mod fs;
pub mod journal;
pub mod lock;
pub mod memory;
pub mod processes;
pub mod scheduler;
pub mod timer;

/// Stubs, as glue writes them.
pub mod stubs {
    macro_rules! stubs {
        ($($name:ident: $file:literal),*) => {
            $(pub mod $name {
                #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
                include!(concat!(env!("OUT_DIR"), "/", $file));
            })*
        };
    }

    stubs!(event: "event.rs", fs: "fs.rs", journal: "journal.rs", lock: "lock.rs", memory: "memory.rs", scheduler: "scheduler.rs", timer: "timer.rs");

    /// The same without tracking and recovery: what those cost is measured beside these.
    pub mod untracked {
        stubs!(
            event: "event_untracked.rs",
            fs: "fs_untracked.rs",
            lock: "lock_untracked.rs",
            memory: "memory_untracked.rs",
            scheduler: "scheduler_untracked.rs",
            timer: "timer_untracked.rs"
        );
    }
}
