//! /usr/bin/python3: a script, the interactive interpreter, half a gigabyte of memory; and the `python3` that `PATH` finds,
//! which may be a chain of wrappers.

use outlast_image::degradation::Degradation;

use crate::case::{Case, Program, SPREAD, WIDE};
use crate::drive::{Drive, Input, Script, Step};
use crate::launch::program;

const PROMPT: &str = "\n>>>";
const PYTHON: &str = "/usr/bin/python3";

pub const CASES: &[Case] = &[
    Case::new(
        "python_script",
        |_| Ok(Program::new(&[PYTHON, &program("script.py"), "1500"])),
        |_| Drive::Pipes(Input::none()),
    )
    .needs(&[PYTHON]),
    Case::new("python_repl", |_| Ok(Program::new(&[PYTHON, "-q"])), |_| Drive::Terminal(conversation()))
        .needs(&[PYTHON])
        .pace(SPREAD),
    Case::new(
        "python_memory",
        |_| Ok(Program::new(&[PYTHON, &program("memory.py"), "500", "400"])),
        |_| Drive::Pipes(Input::none()),
    )
    .needs(&[PYTHON])
    .pace(WIDE),
    Case::new(
        "python_path",
        |_| {
            let path = std::env::var("PATH").unwrap_or_default();
            let home = std::env::var("HOME").unwrap_or_default();
            let found = Program::new(&["python3", &program("script.py"), "1500"]);
            Ok(found.with_env("PATH", &path).with_env("HOME", &home))
        },
        |_| Drive::Pipes(Input::none()),
    )
    .needs(&[PYTHON])
    .may_report(&[Degradation::Children]),
];

const GROW: &[&str] = &["def grow(n):", "    seen[n] = 'x' * n", "    return total * 3 + len(seen)"];
/// Runs until somebody presses Ctrl-C.
const TURN: &[&str] = &[
    "def turn():",
    "    try:",
    "        print('turning')",
    "        while True: pass",
    "    except KeyboardInterrupt:",
    "        print('stopped by', 'hand')",
];

/// Each line is typed when the answer to the one before, and the prompt, are there.
fn conversation() -> Script {
    let more = |line: &str| [Step::line(line), Step::answer(line.trim(), "\n...")];
    let mut steps = vec![Step::wait(PROMPT.trim()), Step::line("total, seen = 0, {}"), Step::answer("{}", PROMPT)];
    for definition in [GROW, TURN] {
        steps.extend(definition.iter().flat_map(|line| more(line)));
        let last = definition.last().expect("a definition has lines").trim();
        steps.extend([Step::line(""), Step::answer(&format!("{last}\n"), PROMPT)]);
    }
    steps.push(Step::look("defined"));
    for i in 0..40 {
        steps.push(Step::line(&format!("total = grow({i}) % 1000003; print('now', {i}, total)")));
        steps.push(Step::answer(&format!("\nnow {i} "), PROMPT));
    }
    steps.extend([
        Step::line("turn()"),
        Step::wait("\nturning"),
        Step::key("\x03"),
        Step::answer("stopped by hand\n", PROMPT),
        Step::line("1/0"),
        Step::answer("\nZeroDivisionError", PROMPT),
        Step::line("sum(map(len, seen.values())), total"),
        Step::answer("\n(780, ", PROMPT),
        Step::look("summed up"),
        Step::line("import sys; sys.exit(total % 100)"),
    ]);
    Script::new(steps)
}
