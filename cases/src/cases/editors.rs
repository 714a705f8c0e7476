//! Editors: ed on pipes, nvi and nano on a terminal.

use crate::case::{Case, Program, Stage, SPREAD};
use crate::drive::{Drive, Input, Script, Step};

pub const CASES: &[Case] = &[
    Case::new("ed", |_| Ok(Program::new(&["/usr/bin/ed", "-s", "poem"])), ed).needs(&["/usr/bin/ed"]),
    Case::new("nvi", |_| Ok(Program::new(&["/usr/bin/nvi", "letter"])), |_| Drive::Terminal(nvi()))
        .needs(&["/usr/bin/nvi"])
        // It asks for a key, and where to send what it rescues, when its user has no name.
        .root_only()
        .pace(SPREAD),
    Case::new("nano", |_| Ok(Program::new(&["/usr/bin/nano", "-I", "letter"])), |_| Drive::Terminal(nano()))
        .needs(&["/usr/bin/nano"])
        .pace(SPREAD),
];

fn ed(_: &Stage) -> Drive {
    let mut commands = String::from("a\n");
    for i in 0..300 {
        commands.push_str(&format!("line {i} of a long poem\n"));
    }
    commands.push_str(".\nw\n");
    for i in 0..300 {
        commands.push_str(&format!("{}s/long/{}/p\n", 1 + i * 7 % 250, "very ".repeat(i % 4) + "long"));
        if i % 20 == 0 {
            commands.push_str(&format!("{},{}m0\nw\n=\n", 10 + i % 30, 15 + i % 30));
        }
    }
    commands.push_str("g/very/s//rather/\nw\nq\n");
    Drive::Pipes(Input::pieces(commands.into_bytes(), 100))
}

fn nvi() -> Script {
    let mut steps = vec![Step::wait("letter: new file"), Step::key("i")];
    for i in 0..30 {
        steps.push(Step::key(&format!("This is line number {i}, typed by hand.\r")));
        steps.push(Step::wait(&format!("number {i},")));
    }
    steps.extend([
        Step::key("the end\x1b"),
        Step::look("typed"),
        Step::key(":%s/by hand/with care/\r"),
        Step::wait("with care"),
        Step::key("1GddjjyyP:w\r"),
        Step::wait("letter:"),
        Step::look("changed"),
        Step::key("u"),
        Step::look("undone"),
        Step::key(":wq\r"),
    ]);
    Script::new(steps)
}

fn nano() -> Script {
    let mut steps = vec![Step::wait("New File")];
    for i in 0..30 {
        steps.push(Step::key(&format!("This is line number {i}, typed by hand.\r")));
        steps.push(Step::wait(&format!("number {i},")));
    }
    steps.extend([
        Step::look("typed"),
        Step::key("\x17number 12\r"),
        Step::look("found"),
        Step::key("\x0b\x0b\x15"),
        Step::look("cut and pasted"),
        Step::key("\x0f\r"),
        Step::wait("Wrote"),
        Step::look("written"),
        Step::key("\x18"),
    ]);
    Script::new(steps)
}
