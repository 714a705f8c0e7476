//! The interfaces of pins and the settings of modules: a file each, plain data, no behaviour. Whatever goes between a pin and a
//! module is of one of these types.
//!
//! A program is known by the name that `outlast ps` shows.

pub mod change;
#[cfg(unix)]
pub mod channel;
pub mod checkpoint;
pub mod comp;
pub mod crash;
pub mod dbr;
pub mod file;
pub mod generations;
pub mod hang;
pub mod ipc;
pub mod leaks;
pub mod mem;
pub mod net;
pub mod node;
pub mod oshang;
pub mod peri;
pub mod plugin;
pub mod pmc;
pub mod proc;
pub mod reboot;
pub mod schl;
pub mod sect;
pub mod server;
pub mod sig;
pub mod storm;
pub mod sysc;
pub mod visible;
pub mod watch;

use outlast_core::{Interface, Named};

const fn named(name: &'static str, what: &'static str) -> Named {
    Named { name, what }
}

/// A pin of RMK's Table 3 that does not exist yet, what it is to do and to tell, and what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    pub interface: Interface,
    pub why: &'static str,
}

/// The pins that exist.
pub const PINS: [&Interface; 12] = [
    &proc::INTERFACE,
    &sysc::INTERFACE,
    &peri::INTERFACE,
    &pmc::INTERFACE,
    &sect::INTERFACE,
    &schl::INTERFACE,
    &sig::INTERFACE,
    &mem::INTERFACE,
    &file::INTERFACE,
    &net::INTERFACE,
    &ipc::INTERFACE,
    &dbr::INTERFACE,
];

/// Those that are between nodes, beside Table 3.
#[cfg(unix)]
pub const BETWEEN_NODES: [&Interface; 2] = [&node::INTERFACE, &channel::INTERFACE];

/// Those that a manager of components has, not the supervisor of a program.
pub const OF_COMPONENTS: [&Interface; 1] = [&comp::INTERFACE];

/// Those that modules of other nodes can use, where they may: pins of the machine, not of one program.
pub const FOR_OTHER_NODES: [&Interface; 1] = [&schl::INTERFACE];

/// What some wait for.
pub const KERNEL_SIDE: &str = "needs the kernel side, which does not exist yet";

/// The others of Table 3.
pub const MISSING: [Missing; 2] = [
    Missing {
        interface: Interface {
            name: "intr",
            what: "exceptions and interrupts of the kernel",
            operations: &[named("hook", "an interrupt or exception is told of"), named("unhook", "it no longer is")],
            events: &[
                named("interrupt", "one that is hooked was taken"),
                named("exception", "the kernel itself has failed: a page that is not there, a protection, an operand"),
                named("panic", "the kernel gives up"),
            ],
        },
        why: KERNEL_SIDE,
    },
    Missing {
        interface: Interface {
            name: "apic",
            what: "interrupts between processors, NMI",
            operations: &[
                named("route", "what a counter raises at its end becomes an NMI"),
                named("send", "a processor sends another one an NMI"),
            ],
            events: &[named("nmi", "a processor has taken one")],
        },
        why: KERNEL_SIDE,
    },
];
