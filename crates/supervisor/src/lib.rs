//! The outside half of outlast: puts the engine into a program, watches it, and climbs the ladder when it dies.
//!
//! Nothing here runs inside the protected process. What the program can write (session, store) is never trusted: process
//! ids found there are proved to be ours before they are used, and credentials never come from there.

pub mod adopt;
pub mod ask;
pub mod bell;
pub mod birth;
pub mod bootstrap;
pub mod channel;
pub mod clock;
pub mod coldresume;
pub mod connection;
pub mod control_group;
pub mod credentials;
pub mod departure;
pub mod elf;
pub mod encryption;
pub mod end;
pub mod engine;
pub mod error;
pub mod exec;
pub mod fault_list;
pub mod fork;
pub mod forward;
pub mod further_back;
pub mod futex;
pub mod generation;
pub mod generations;
pub mod inject;
pub mod jobcontrol;
pub mod keeping;
pub mod kin;
pub mod launch;
pub mod log;
pub mod meta;
pub mod names;
pub mod oom_score;
pub mod options;
pub mod orphans;
pub mod postponed;
pub mod presence;
pub mod private_folder;
pub mod privileges;
pub mod processes;
pub mod program;
pub mod program_folder;
pub mod program_name;
pub mod remains;
pub mod remote;
pub mod reports;
pub mod respawn;
pub mod resume;
pub mod session;
pub mod shortage;
pub mod signals;
pub mod start;
pub mod state_folder;
pub mod status;
pub mod stores;
pub mod successor;
pub mod supervisor;
pub mod trace;
pub mod unreadable;
pub mod verdict;

pub use error::Error;
