//! gzip as a filter, and in place: the compressed bytes are compared.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};

pub const CASES: &[Case] = &[
    Case::new(
        "gzip_filter",
        |_| Ok(Program::new(&["/usr/bin/gzip", "-n", "-c"])),
        |_| Drive::Pipes(Input::pieces(text(), 60_000)),
    )
    .needs(&["/usr/bin/gzip"]),
    Case::new(
        "gzip_in_place",
        |stage| {
            stage.room.put("book", &text())?;
            Ok(Program::new(&["/usr/bin/gzip", "-n", "-9", "book"]))
        },
        |_| Drive::Pipes(Input::none()),
    )
    .needs(&["/usr/bin/gzip"]),
];

/// A few megabytes that compress neither perfectly nor not at all.
fn text() -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(4);
    (0..400_000).flat_map(|i| format!("{} {:x}\n", i % 1000, random.u16(..)).into_bytes()).collect()
}
