//! Midnight Commander: its panels, its viewer and its editor.

use outlast_image::degradation::Degradation;

use crate::case::{Case, Program, Stage, SPREAD};
use crate::drive::{Drive, Script, Step};
use crate::failure::Outcome;

const MC: &str = "/usr/bin/mc";

pub const CASES: &[Case] = &[Case::new("mc", commander, |_| Drive::Terminal(tidy_up()))
    .needs(&[MC])
    .pace(SPREAD)
    // At its start it asks another program whether the terminal is a console.
    .may_report(&[Degradation::Children])];

/// Without what is another thing every time: hints, dates, free space.
fn commander(stage: &Stage) -> Outcome<Program> {
    let settings = "[Midnight-Commander]\nuse_internal_edit=true\nuse_file_to_guess_type=false\n\
                    auto_save_setup=false\n[Layout]\nmessage_visible=false\nfree_space=false\n";
    stage.room.put(".config/mc/ini", settings.as_bytes())?;
    let panels = "[New Left Panel]\nlist_mode=brief\n[New Right Panel]\nlist_mode=brief\n";
    stage.room.put(".config/mc/panels.ini", panels.as_bytes())?;
    for i in 0..20 {
        stage.room.put(&format!("file-{i:02}"), format!("line of {i}\n").repeat(i + 1).as_bytes())?;
    }
    // Neither mouse nor a shell beneath.
    Ok(Program::new(&[MC, "-d", "-u"]))
}

fn tidy_up() -> Script {
    let mut steps = vec![Step::wait("10Quit"), Step::look("panels")];
    steps.extend(dialog("\x1b7", "Enter directory name:", "folder\r", "/folder"));
    steps.push(Step::look("made a folder"));
    // The cursor is on the folder now; the file below it goes there, and the next, and the next.
    for i in 0..12 {
        steps.push(Step::key("\x0e"));
        steps.extend(dialog(if i % 2 == 0 { "\x1b5" } else { "\x1b6" }, "to:", &format!("folder/new-{i}\r"), "10Quit"));
        steps.push(Step::look(&format!("moved or copied {i}")));
    }
    steps.extend([Step::key("\x1b[25~"), Step::wait("line of"), Step::look("viewed"), Step::key("\x1b0")]);
    steps.extend([Step::wait("/folder"), Step::key("\x1b4"), Step::wait("10Quit"), Step::look("opened")]);
    for i in 0..20 {
        steps.extend([Step::key(&format!("typed {i}\r")), Step::wait(&format!("typed {i}\n"))]);
    }
    steps.extend(dialog("\x1b2", "Confirm save file", "\r", "10Quit"));
    steps.extend([Step::look("edited"), Step::key("\x1b0"), Step::wait("/folder"), Step::look("panels again")]);
    steps.extend(dialog("\x1b8", "Delete file", "\r", "10Quit"));
    steps.extend([Step::look("deleted"), Step::key("\x1b0")]);
    Script::new(steps)
}

/// A key that opens a dialog, what is typed there, and what is on the screen then.
fn dialog(key: &str, title: &str, keys: &str, then: &str) -> [Step; 4] {
    [Step::key(key), Step::wait(title), Step::key(keys), Step::wait(then)]
}
