//! One flat table with one line and one class for every x86-64 system call of Linux 6.18.
//!
//! The gate reads [`CLASS`] (a byte a number) and passes class 0 straight through; everything else asks [`row`] for
//! what it must know: whether the call waits, what a signal leaves of it, which arguments are descriptors, which
//! memory the kernel writes, and what tells after a death whether it happened. Plain data, no state, no allocation.
//!
//! fcntl, ioctl, prctl and arch_prctl are many calls in one: [`look`] finds the row of the command. [`written`] turns a row
//! and the arguments of one call into the ranges of memory that the kernel may write.
//!
//! A number without a row (also x32 numbers, which have bit 30 set) is of class [`Class::Unknown`]: it is treated as a
//! visible event with a commit before and after, never passed through.

#![cfg_attr(not(test), no_std)]

mod again;
mod class;
mod command;
mod family;
mod interrupted;
mod out;
mod reach;
mod ring;
mod row;
mod table;
mod timeout;
mod witness;

pub use again::again;
pub use class::Class;
pub use command::{commands, look};
pub use interrupted::{interrupted, Interrupted};
pub use out::{Amount, Len, Out};
pub use reach::{written, Memory, Told};
pub use ring::RingOp;
pub use row::{Row, OUTS};
pub use table::{count, row, unknown, CLASS, LEN, TABLE};
pub use timeout::{timeout, Timeout, Unit};
pub use witness::{Place, Witness};

#[cfg(test)]
mod checks;
