//! Mappings made, moved, discarded; the heap grown and shrunk.

use crate::case::{Case, Program, SPREAD};
use crate::drive::{Drive, Input};
use crate::failure::Outcome;
use crate::launch::program;
use outlast_image::degradation::Degradation;
use std::time::Duration;

pub const CASES: &[Case] = &[
    Case::new("codes", |_| Ok(Program::new(&[&program("codes"), "300"])), |_| Drive::Pipes(Input::none())),
    Case::new(
        "codes_strict",
        |_| Ok(Program::new(&[&program("codes"), "300", "strict"])),
        |_| Drive::Pipes(Input::none()),
    ),
    Case::new("advice", |_| Ok(Program::new(&[&program("advice"), "400"])), |_| Drive::Pipes(Input::none()))
        .pace(SPREAD),
    Case::new("grows", |_| Ok(Program::new(&[&program("grows"), "250"])), |_| Drive::Pipes(Input::none())).pace(SPREAD),
    Case::new("given_up", |_| Ok(Program::new(&[&program("given_up"), "150"])), |_| Drive::Pipes(Input::none()))
        .pace(SPREAD),
    // Kills come seldom enough for spans to be found dense and left open.
    Case::new("dense", |_| Ok(Program::new(&[&program("dense"), "700000"])), |_| Drive::Pipes(Input::none()))
        .pace((Duration::from_millis(300), Duration::from_millis(900)))
        .with_options(&["--every", "40ms"]),
    Case::new("limits", |_| Ok(Program::new(&[&program("limits"), "150"])), |_| Drive::Pipes(Input::none()))
        .pace(SPREAD),
    Case::new("locked", |_| Ok(Program::new(&[&program("locked"), "300"])), |_| Drive::Pipes(Input::none()))
        .pace(SPREAD),
    Case::new("locked_all", |_| Ok(Program::new(&[&program("locked"), "300", "all"])), |_| Drive::Pipes(Input::none()))
        .pace(SPREAD)
        .root_only(),
    Case::new("unnamed", |_| Ok(Program::new(&[&program("unnamed"), "20"])), |_| Drive::Pipes(Input::none()))
        .pace(SPREAD)
        .may_report(&[Degradation::SharedMapping]),
    Case::new("own_memfd", |_| own_file("memfd"), |_| Drive::Pipes(Input::none())).pace(SPREAD),
    Case::new("own_tmpfile", |_| own_file("tmpfile"), |_| Drive::Pipes(Input::none())).pace(SPREAD),
    Case::new("own_closed", |_| own_file("closed"), |_| Drive::Pipes(Input::none())).pace(SPREAD),
    Case::new("own_named", |_| own_file("named"), |_| Drive::Pipes(Input::none())).pace(SPREAD),
    Case::new("own_named_closed", |_| own_file("named-closed"), |_| Drive::Pipes(Input::none())).pace(SPREAD),
    Case::new("own_named_locked", |_| own_file("named-locked"), |_| Drive::Pipes(Input::none())).pace(SPREAD),
    Case::new("own_named_locked_closed", |_| own_file("named-locked-closed"), |_| Drive::Pipes(Input::none()))
        .pace(SPREAD),
    Case::new("own_calls", |_| own_calls("memfd"), |_| Drive::Pipes(Input::none())).pace(SPREAD),
    Case::new("own_transfers", |_| own_calls("transfers"), |_| Drive::Pipes(Input::none())).pace(SPREAD),
    Case::new("own_calls_tmpfile", |_| own_calls("tmpfile"), |_| Drive::Pipes(Input::none())).pace(SPREAD),
    Case::new(
        "locked_mapping",
        |_| Ok(Program::new(&[&program("locked_mapping"), "30"])),
        |_| Drive::Pipes(Input::none()),
    )
    .pace(SPREAD)
    .may_report(&[Degradation::SharedMapping]),
    Case::new("unreadable", |_| Ok(Program::new(&[&program("unreadable"), "600"])), |_| Drive::Pipes(Input::none())),
    Case::new("pieces", |_| Ok(Program::new(&[&program("pieces"), "200"])), |_| Drive::Pipes(Input::none())),
    Case::new("mapper", |_| Ok(Program::new(&[&program("mapper"), "1500"])), |_| Drive::Pipes(Input::none()))
        .pace(SPREAD),
    Case::new(
        "mapper_static",
        |_| Ok(Program::new(&[&program("mapper-static"), "1500"])),
        |_| Drive::Pipes(Input::none()),
    )
    .pace(SPREAD),
];

/// Files that are the program's alone.
fn own_file(kind: &'static str) -> Outcome<Program> {
    Ok(Program::new(&[&program("own_file"), "600", kind]))
}

/// The same, of which nothing is mapped.
fn own_calls(kind: &'static str) -> Outcome<Program> {
    Ok(Program::new(&[&program("own_calls"), "600", kind]))
}
