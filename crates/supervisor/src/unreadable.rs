//! A store that the engine cannot read: the program cannot be brought back, and everything of it is kept.

use outlast_image::control::{unreadable as why, Control};
use std::sync::atomic::Ordering::Relaxed;

/// The same about the store of the program whose control page this is.
pub fn sentence(reason: u32, control: &Control) -> String {
    if reason != why::FILE {
        return format!("the store {}", words(reason));
    }
    let path: Vec<u8> = control.lost_file.iter().map(|byte| byte.load(Relaxed)).take_while(|byte| *byte != 0).collect();
    // Whatever the name holds: it is written to a terminal.
    let path = String::from_utf8_lossy(&path).escape_debug().to_string();
    format!("{path}, which it maps, was removed or replaced; put it back under that name (the file itself: a copy is another one), then resume")
}

/// What is wrong with the store, and what to do about it.
pub fn words(reason: u32) -> &'static str {
    match reason {
        why::FOREIGN => "is not one of outlast's; bring back the right file",
        why::NEWER => "was written by a newer outlast; resume it with that",
        why::PAGE_SIZE => "was made for another page size; resume it on a machine like the one it was made on",
        why::TOO_SHORT => "is not as long as it was made; bring back a complete copy",
        why::INDEX => "lists more than outlast has memory for; resume it with the outlast that made it",
        why::SYNC => "lies on a medium that refuses a sync; check the device, then resume again",
        why::KERNEL => "was committed in the middle of another kernel's code; boot that kernel, then resume",
        why::BARE => "does not have its memory yet: it was just born, and what had that ended as well",
        _ => "is damaged; bring back a copy, or remove the program with `outlast rm`",
    }
}
