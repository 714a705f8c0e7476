//! Real programs that must survive, and the hammer that kills them.
//!
//! A *case* says how to start a program and how to talk to it. A *trial* runs it once by itself and then under
//! `outlast run`, while the *hammer* kills it at random moments, and compares the two *outside views*: byte streams,
//! screens, files, exit status. Nobody looking from outside may be able to tell the difference.

pub mod attack;
pub mod blow;
pub mod case;
pub mod cases;
pub mod container;
pub mod control_page;
pub mod diagnosis;
pub mod difference;
pub mod drive;
pub mod event_log;
pub mod failure;
pub mod gap;
pub mod hammer;
pub mod histogram;
pub mod isolation;
pub mod keeper;
pub mod launch;
pub mod patience;
pub mod quota;
pub mod report;
pub mod room;
pub mod setting;
pub mod suite;
pub mod tracer;
pub mod tree;
pub mod trial;
pub mod view;
pub mod watchdog;
