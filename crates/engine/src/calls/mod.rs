//! What the gate does with each class of system call.

pub mod descriptors;
pub mod devices;
pub mod directory;
pub mod epoll;
pub mod exec;
pub mod exit;
pub mod groups;
pub mod inherited;
pub mod input;
pub mod memory;
pub mod message;
pub mod move_between;
pub mod names;
pub mod offsets;
pub mod output;
pub mod own_folder;
pub mod own_maps;
pub mod shared_child;
pub mod signals;
pub mod spawn;
pub mod splice;
pub mod threads;
pub mod timers;
pub mod unseen;
pub mod window;
pub mod write_file;
