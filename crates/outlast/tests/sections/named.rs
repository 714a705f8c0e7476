//! Answers each line with its number and the line: `work` enters and leaves sections often, `hang` stays in one as long as the first byte of the file
//! is not 0.

use outlast_api::Section;
use std::io::{stdin, stdout, BufRead, Read, Write};

static ITEM: Section = Section::new("an item");
static STEP: Section = Section::new("a step of it");

fn item(file: &str, n: u64, stays: bool) -> u64 {
    let item = ITEM.enter();
    if n % 3 == 0 {
        item.leave(1);
        return 1;
    }
    let _step = STEP.enter();
    let is_set = || {
        let mut byte = [0];
        std::fs::File::open(file).unwrap().read_exact(&mut byte).unwrap();
        byte != [0]
    };
    while stays && is_set() {}
    n
}

fn main() {
    let file = std::env::args().nth(1).unwrap();
    for (n, line) in (1..).zip(stdin().lock().lines()) {
        let line = line.unwrap();
        match &*line {
            "work" => assert!((0..20_000).map(|n| item(&file, n, false)).sum::<u64>() > 0),
            "hang" => _ = item(&file, 1, true),
            "threads" => std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| (0..1000).map(|n| item(&file, n, false)).sum::<u64>());
                }
            }),
            _ => (),
        }
        writeln!(stdout(), "{n} {line}").unwrap();
    }
    std::process::exit(3);
}
