//! Reads what another node says, cut where the input says so: the first byte is how long each piece is. What can be read can be written, and is
//! read as the same again.
//!
//! See `make fuzz`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_channel::frame::{write, Reader};

fuzz_target!(|data: &[u8]| {
    let Some((length, bytes)) = data.split_first() else { return };
    let mut reader = Reader::default();
    for piece in bytes.chunks(usize::from(*length).max(1)) {
        reader.push(piece);
        loop {
            let frame = match reader.take() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(_) => return,
            };
            let mut again = Vec::new();
            assert!(write(&mut again, &frame));
            let mut other = Reader::default();
            other.push(&again);
            assert_eq!(other.take(), Ok(Some(frame)));
        }
    }
});
