//! Perl and Lua, fed with text line by line.

use crate::case::{Case, Program, Stage};
use crate::drive::{Drive, Input};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("perl", |_| Ok(Program::new(&["/usr/bin/perl", &program("script.pl")])), text).needs(&["/usr/bin/perl"]),
    Case::new("lua", |_| Ok(Program::new(&["/usr/bin/lua5.4", &program("script.lua")])), text)
        .needs(&["/usr/bin/lua5.4"]),
];

/// Words made of syllables: enough of them are new, enough come again.
fn text(_: &Stage) -> Drive {
    let mut random = fastrand::Rng::with_seed(8);
    let mut word = || (0..random.usize(1..4)).map(|_| ["ka", "to", "mi", "ren", "sul"][random.usize(..5)]).collect();
    let lines = (0..800).map(|_| (0..8).map(|_| word()).collect::<Vec<String>>().join(" ") + "\n");
    Drive::Pipes(Input::pieces(lines.collect::<String>().into_bytes(), 300))
}
