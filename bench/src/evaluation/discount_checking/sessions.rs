//! What is done in the sessions of Table 2: generated from a seed, so that it is the same in every run.

use fastrand::Rng;

/// One thing that a person does, after thinking.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Presses a key.
    Key(char),
    /// Types a line at the terminal.
    Line(String),
    /// Moves the mouse and clicks: a line of xdotool's commands.
    Mouse(String),
}

/// Words of an introduction to a paper about recovery.
const WORDS: &[&str] = &[
    "the",
    "of",
    "a",
    "is",
    "to",
    "in",
    "and",
    "that",
    "state",
    "process",
    "failure",
    "recovery",
    "system",
    "program",
    "user",
    "checkpoint",
    "memory",
    "output",
    "visible",
    "event",
    "overhead",
    "commit",
    "transparent",
    "application",
    "message",
    "kernel",
    "which",
    "must",
    "can",
    "not",
    "before",
    "after",
    "crash",
    "reliable",
    "transaction",
    "undo",
    "log",
    "page",
    "fast",
];
const LETTERS: &str = "etaoinshrdlu";
/// Columns after which a line of text is ended.
const LINE: usize = 66;

fn keys(text: &str) -> impl Iterator<Item = Act> + '_ {
    text.chars().map(Act::Key)
}

/// Somebody who writes a text in vi: words with a mistake here and there, which is corrected, and every some lines a walk back to
/// change something, and the text saved.
pub fn writing(seed: u64, count: usize) -> Vec<Act> {
    let mut random = Rng::with_seed(seed);
    let (mut text, mut column, mut lines) = (String::from("i"), 0, 0);
    while text.len() < count {
        let word = WORDS[random.usize(..WORDS.len())];
        for letter in word.chars() {
            if random.u8(..) < 6 {
                text.push(LETTERS.as_bytes()[random.usize(..LETTERS.len())] as char);
                text.push('\u{7f}');
            }
            text.push(letter);
        }
        column += word.len() + 1;
        if column < LINE {
            text.push_str(if random.u8(..) < 20 { ", " } else { " " });
            continue;
        }
        (column, lines) = (0, lines + 1);
        text.push_str(".\r");
        if lines % 4 == 0 {
            text.push_str(
                ["\u{1b}kkwwcwword\u{1b}Go", "\u{1b}kbx:w\rGo", "\u{1b}kddpGo", "\u{1b}1Gwdwu:w\rGo"]
                    [random.usize(..4)],
            );
        }
    }
    keys(&text).take(count).collect()
}

/// Somebody who makes a budget in a sheet: a label, two numbers and their product a row, and a sum now and then.
pub fn budget(seed: u64, count: usize) -> Vec<Act> {
    let mut random = Rng::with_seed(seed);
    let (mut text, mut row) = (String::new(), 0);
    while text.len() < count {
        let label = WORDS[random.usize(..WORDS.len())];
        let (months, rate) = (random.u32(1..13), random.u32(100..5000));
        text.push_str(&format!("<{label}\rl={months}\rl={rate}\rl=B{row}*C{row}\rhhhj"));
        row += 1;
        if row % 5 == 0 {
            text.push_str(&format!("lll=@sum(D{}:D{})\rhhhj", row - 5, row - 1));
            row += 1;
        }
    }
    keys(&text).take(count).collect()
}

/// Somebody who walks through a dungeon: runs until there is something to see, a step, a search. A space takes away what asks to be
/// read.
pub fn dungeon(seed: u64, count: usize) -> Vec<Act> {
    let mut random = Rng::with_seed(seed);
    let mut text = String::new();
    while text.len() < count {
        let way = random.usize(..8);
        // Runs end at a wall; steps would only hit it.
        match random.u8(..5) {
            0 => text.push('s'),
            1 => text.push("hjklyubn".as_bytes()[way] as char),
            _ => text.push("HJKLYUBN".as_bytes()[way] as char),
        }
        if random.u8(..3) == 0 {
            text.push(' ');
        }
    }
    keys(&text).take(count).collect()
}

/// Rectangles of a simple inverter: layer, lower left and upper right corner in lambda.
const INVERTER: &[(&str, [u32; 4])] = &[
    ("nwell", [10, 30, 46, 52]),
    ("ndiff", [20, 10, 36, 16]),
    ("pdiff", [20, 34, 36, 46]),
    ("poly", [27, 6, 29, 50]),
    ("ndcontact", [21, 11, 25, 15]),
    ("ndcontact", [31, 11, 35, 15]),
    ("pdcontact", [21, 36, 25, 40]),
    ("pdcontact", [31, 36, 35, 40]),
    ("metal1", [31, 15, 35, 36]),
    ("metal1", [21, 4, 25, 11]),
    ("metal1", [21, 40, 25, 50]),
    ("metal1", [14, 50, 42, 54]),
    ("metal1", [14, 2, 42, 6]),
    ("polycontact", [22, 22, 27, 27]),
];
const LABELS: &[(&str, [u32; 2])] = &[("in", [23, 24]), ("out", [33, 25]), ("vdd", [20, 52]), ("gnd", [20, 4])];
/// The part of the layout that is shown first.
pub const VIEW: &str = "view 0 0 80 60";

/// A click at a place of the layout, where magic's window shows it after [`VIEW`] on a screen without a window manager.
fn click(x: u32, y: u32, button: u32) -> Act {
    let [x, y] = [1250 + 83 * x, 6410 - 83 * y].map(|tenths| tenths / 10);
    Act::Mouse(format!("mousemove {x} {y} click {button}"))
}

/// Somebody who lays out inverters in magic: two corners with the mouse and a layer, again and again, then labels and checks.
pub fn layout(seed: u64, count: usize) -> Vec<Act> {
    let mut random = Rng::with_seed(seed);
    let mut acts = Vec::new();
    while acts.len() < count {
        let shift = random.u32(..30);
        for (layer, [left, bottom, right, top]) in INVERTER {
            acts.extend([
                click(left + shift, *bottom, 1),
                click(right + shift, *top, 3),
                Act::Line(format!("paint {layer}")),
            ]);
        }
        for (name, [x, y]) in LABELS {
            acts.extend([click(x + shift, *y, 1), click(x + shift, *y, 3), Act::Line(format!("label {name}"))]);
        }
        acts.extend(["drc check", "save", "select clear"].map(|line| Act::Line(line.into())));
    }
    acts.truncate(count);
    acts
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [fn(u64, usize) -> Vec<Act>; 4] = [writing, budget, dungeon, layout];

    #[test]
    fn a_seed_makes_the_same_session_again_and_another_seed_another() {
        for session in ALL {
            assert_eq!(session(7, 300), session(7, 300));
            assert_ne!(session(7, 300), session(8, 300));
        }
    }

    #[test]
    fn a_session_is_as_long_as_was_asked_for() {
        for session in ALL {
            assert_eq!(session(7, 57).len(), 57);
        }
    }
}
