//! Really makes the calls, in a forked child, in memory full of a canary: bytes may change only where the row says so, and
//! must change where it says so. Every Pure call and every call with an out-parameter is here, or excused with a reason.

mod absent;
mod again;
mod alarm;
mod arena;
mod attributes;
mod child;
mod commands;
mod coverage;
mod descriptors;
mod identity;
mod interruption;
mod memory;
mod messages;
mod metadata;
mod objects;
mod probe;
mod processes;
mod raw;
mod readiness;
mod ring;
mod scheduling;
mod signals;
mod sockets;
mod threads;
mod time;
mod transfer;
