//! Decodes arbitrary bytes as an instruction: what is said of it must be what iced-x86 says.
#![no_main]

#[path = "../../crates/rewrite/tests/support/reference.rs"]
mod reference;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(difference) = reference::compare(bytes) {
        panic!("{difference}");
    }
});
