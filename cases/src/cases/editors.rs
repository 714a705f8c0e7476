//! Editors: ed on pipes, the others on a terminal.

use crate::case::{Case, Program, Stage, SPREAD};
use crate::drive::{Drive, Input, Script, Step};

const EMACS: &str = "/usr/bin/emacs";
const VIM: &str = "/usr/bin/vim.basic";

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
    Case::new(
        "vim",
        |_| Ok(Program::new(&[VIM, "-u", "NONE", "-i", "NONE", "-N", "letter"])),
        |_| Drive::Terminal(vim()),
    )
    .needs(&[VIM])
    .pace(SPREAD),
    Case::new(
        "emacs",
        |stage| {
            // Else it has other processes compile what it loads, and saves and says so at some time.
            stage.room.put(
                ".emacs.d/early-init.el",
                b"(setq native-comp-deferred-compilation nil auto-save-interval 0 auto-save-timeout nil)\n",
            )?;
            Ok(Program::new(&[EMACS, "-nw", "--no-site-file", "--no-splash", "letter"]))
        },
        |_| Drive::Terminal(emacs()),
    )
    .needs(&[EMACS])
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

fn vim() -> Script {
    let mut steps = vec![Step::wait("\"letter\" [New]"), Step::key("i")];
    for i in 0..25 {
        steps.push(Step::key(&format!("This is line number {i}, typed by hand.\r")));
        steps.push(Step::wait(&format!("number {i},")));
    }
    steps.extend([
        Step::key("the end\x1b"),
        Step::look("typed"),
        // A macro that is called again and again.
        Step::key("ggqaA, and more\x1bjq15@a"),
        Step::look("repeated"),
        Step::key(":%s/by hand/with care/g\r"),
        Step::wait("with care"),
        Step::look("replaced"),
        // Silently: else it says how long ago that was.
        Step::key(":silent undo 2\r"),
        Step::look("undone"),
        Step::key(":vsplit\r:g/7/d\r"),
        Step::look("split"),
        Step::key(":let @b = join(map(range(200), 'v:val * v:val'), ',')\r:$put b\r"),
        Step::look("computed"),
        Step::key(":wqa\r"),
    ]);
    Script::new(steps)
}

fn emacs() -> Script {
    let mut steps = vec![Step::wait("(New file)")];
    for i in 0..25 {
        steps.push(Step::key(&format!("This is line number {i}, typed by hand.\r")));
        steps.push(Step::wait(&format!("number {i},")));
    }
    steps.extend([
        Step::look("typed"),
        Step::key("\x18\x13"),
        Step::wait("Wrote "),
        Step::key("\x1b<\x1bxreplace-string\rby hand\rwith care\r"),
        Step::wait("Replaced 25 occurrences"),
        Step::key("\x1b<"),
        Step::look("replaced"),
        Step::key("\x1f"),
        Step::look("undone"),
        // Computes for a while, then says so.
        Step::key(
            "\x1b:(let ((n 0)) (dotimes (i 200000) (setq n (% (+ n i) 1009))) (insert (format \"sum %d.\" n)))\r",
        ),
        Step::wait("sum "),
        Step::key("\x182"),
        Step::look("split"),
        Step::key("\x13sum\r\x18\x13"),
        Step::wait("Wrote "),
        Step::look("found and written"),
        Step::key("\x18\x03"),
    ]);
    Script::new(steps)
}
