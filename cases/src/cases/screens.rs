//! Programs that own the whole screen: a spreadsheet and a game.

use crate::case::{Case, Program, SPREAD};
use crate::drive::{Drive, Script, Step};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("sc", |_| Ok(Program::new(&["/usr/bin/sc", "sheet"])), |_| Drive::Terminal(spreadsheet()))
        .needs(&["/usr/bin/sc"])
        .pace(SPREAD),
    Case::new("game", |_| Ok(Program::new(&[&program("game")])), |_| Drive::Terminal(moves())).pace(SPREAD),
    Case::new("game_resized", |_| Ok(Program::new(&[&program("game"), "40"])), |_| Drive::Terminal(resized()))
        .pace(SPREAD),
];

fn spreadsheet() -> Script {
    let mut steps = vec![Step::wait("New file")];
    for i in 0..12 {
        steps.push(Step::key(&format!("={}\r", i * i + 1)));
        steps.push(Step::wait(&format!("{}.00", i * i + 1)));
        steps.push(Step::key("j"));
    }
    steps.extend([
        Step::key("=@sum(A0:A11)\r"),
        Step::wait("518.00"),
        Step::look("summed up"),
        Step::key("gA3\r=100\r"),
        Step::wait("608.00"),
        Step::look("recalculated"),
        Step::key("P\r"),
        Step::look("saved"),
        Step::key("q"),
    ]);
    Script::new(steps)
}

/// A long way over the board; the turn counter says when a key was taken.
fn moves() -> Script {
    let mut steps = vec![Step::wait("turn 0")];
    let legs = [('j', 1), ('l', 25), ('j', 5), ('h', 50), ('k', 4), ('l', 20), ('k', 8)];
    let way = legs.into_iter().flat_map(|(key, steps)| std::iter::repeat_n(key, steps));
    for (turn, key) in way.enumerate() {
        steps.push(Step::key(&key.to_string()));
        steps.push(Step::wait(&format!("turn {}\n", turn + 1)));
        if turn % 30 == 29 {
            steps.push(Step::look(&format!("turn {turn}")));
        }
    }
    steps.push(Step::key("q"));
    Script::new(steps)
}

/// The window changes its size: SIGWINCH and the new size must arrive.
fn resized() -> Script {
    let mut steps = vec![Step::wait("turn 0\n")];
    for (round, (rows, columns)) in [(30, 100), (20, 70), (24, 80), (40, 120)].into_iter().enumerate() {
        let shows = |turns| Step::wait(&format!("window {columns}x{rows}  turn {turns}\n"));
        steps.push(Step::Resize(rows, columns));
        steps.push(shows(4 * round));
        steps.push(Step::look(&format!("resized to {rows} rows")));
        steps.push(Step::key(if round % 2 == 0 { "lljj" } else { "llkk" }));
        steps.push(shows(4 * round + 4));
        steps.push(Step::look(&format!("{rows} rows")));
    }
    steps.push(Step::key("q"));
    Script::new(steps)
}
