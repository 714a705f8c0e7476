//! Clients' sides with recovery that is written by hand, service by service, as C3 has it: what glue's are compared with, in
//! lines and in time. The servers are the same.

pub mod event;
pub mod fs;
pub mod lock;
