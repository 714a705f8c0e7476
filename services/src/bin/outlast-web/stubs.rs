//! Calls of the six services, through stubs that recover, written by glue or by hand, or through such that do not.

use outlast_glue_rt::{CallError, Channel};
use outlast_services::{by_hand, stubs};

use crate::failure::CallFailed;

/// Which stubs the server's parts call by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Stubs {
    /// Stubs that track what is open, and bring it back when a component is micro-rebooted.
    Glue,
    /// The same, but those of locks, events and files are written by hand.
    Hand,
    /// Stubs that only carry calls, for comparison: the server ends with the first component that dies.
    Base,
}

impl Stubs {
    /// The component that serves a service for clients with such stubs, as `outlast-service` names it.
    pub fn component(self, service: &str) -> String {
        match self {
            Self::Glue | Self::Hand => service.to_string(),
            Self::Base => format!("{service}-untracked"),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Glue => "glue",
            Self::Hand => "hand",
            Self::Base => "base",
        }
    }
}

macro_rules! either {
    ($module:ident, $hand:path, $name:ident { $($function:ident($($argument:ident: $ty:ty),*) -> $result:ty;)* }) => {
        #[derive(Clone)]
        pub enum $name {
            Glue(stubs::$module::Client),
            Hand($hand),
            Base(stubs::untracked::$module::Client),
        }

        impl $name {
            pub fn new(stubs: Stubs, channel: Channel) -> Self {
                match stubs {
                    Stubs::Glue => Self::Glue(stubs::$module::Client::new(channel)),
                    Stubs::Hand => Self::Hand(<$hand>::new(channel)),
                    Stubs::Base => Self::Base(stubs::untracked::$module::Client::new(channel)),
                }
            }

            $(pub fn $function(&self, $($argument: $ty),*) -> Result<$result, CallFailed> {
                let result = match self {
                    Self::Glue(client) => client.$function($($argument),*),
                    Self::Hand(client) => client.$function($($argument),*),
                    Self::Base(client) => client.$function($($argument),*),
                };
                result.map_err(|error: CallError| CallFailed { call: stringify!($function), error })
            })*
        }
    };
}

either! { event, by_hand::event::Client, Event {
    event_split(parent: u64, group: i32) -> u64;
    event_wait(event: u64) -> i32;
    event_trigger(event: u64) -> i32;
}}

either! { fs, by_hand::fs::Client, Fs {
    fs_split(parent: u64, name: &[u8], flags: u32) -> (u64, u64);
    fs_read(file: u64, most: u32) -> (i32, Vec<u8>, u32);
    fs_write(file: u64, data: &[u8]) -> (i32, i64);
    fs_status(file: u64) -> (i32, u64, u32);
    fs_release(file: u64) -> i32;
}}

either! { lock, by_hand::lock::Client, Lock {
    lock_alloc() -> u64;
    lock_take(lock: u64, thread: u32) -> i32;
    lock_release(lock: u64, thread: u32) -> i32;
}}

either! { memory, stubs::memory::Client, Memory {
    mem_get(count: u32) -> (u64, std::sync::Arc<std::os::fd::OwnedFd>);
    mem_alias(of: u64, to: u32, rights: u32) -> u64;
    mem_map(page: u64) -> (i32, u32, u32, std::sync::Arc<std::os::fd::OwnedFd>);
    mem_revoke(page: u64) -> i32;
    mem_who() -> u32;
}}

either! { scheduler, stubs::scheduler::Client, Scheduler {
    sched_create(priority: u32) -> u64;
    sched_block(thread: u64, until: u64) -> i32;
    sched_wakeup(thread: u64) -> i32;
}}

either! { timer, stubs::timer::Client, Timer {
    timer_create(start: u64, period: u64) -> u64;
    timer_wait(timer: u64) -> (i32, u32);
}}

impl Memory {
    pub fn channel(&self) -> &Channel {
        match self {
            Self::Glue(client) | Self::Hand(client) => client.channel(),
            Self::Base(client) => client.channel(),
        }
    }

    /// Maps a page that this client has, until it is revoked.
    pub fn map(&self, page: u64) -> Result<std::sync::Arc<outlast_glue_rt::Mapped>, CallFailed> {
        use std::os::fd::AsFd;
        let (_, count, rights, memory) = self.mem_map(page)?;
        outlast_services::memory::map_in(self.channel(), page, count, rights, memory.as_fd())
            .map_err(|error| CallFailed { call: "mem_map", error })
    }
}
