//! Stands in for `outlast` in the suite's own tests, and makes one mistake: the one its file name ends with.
//!
//! `impostor-exact` makes none; it runs the program unprotected, but shows a control page that says otherwise.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::{env, mem};

use outlast_image::control::{state, Control, MAGIC};
use outlast_image::degradation::Degradation;
use outlast_image::layout::SESSION_LEN;

fn main() -> io::Result<()> {
    let words: Vec<String> = env::args().collect();
    let mistake = words[0].rsplit('-').next().unwrap_or_default();
    match words.get(1).map(String::as_str) {
        Some("run") => run(&words, mistake),
        Some("log") => Ok(()),
        _ => Err(io::Error::other("only run and log")),
    }
}

fn run(words: &[String], mistake: &str) -> io::Result<()> {
    let after = |word: &str| words.iter().position(|w| w == word).map_or(words.len(), |i| i + 1);
    write_session(&words[after("--name")], mistake)?;
    let mut program = Command::new(&words[after("--")]);
    program.args(&words[after("--") + 1..]);
    match mistake {
        "lose" => drop(program.env("FAULT", "lose:777")),
        "repeat" => drop(program.env("FAULT", "repeat:777")),
        "chat" => io::stderr().write_all(b"outlast: protecting your program\n")?,
        "leave" => drop(Command::new("/bin/sleep").arg("1000").stdout(io::stderr()).spawn()?),
        "hang" => program = sleep(),
        "status" => {
            program.status()?;
            std::process::exit(1);
        }
        _ => {}
    }
    Err(program.exec())
}

fn sleep() -> Command {
    let mut sleep = Command::new("/bin/sleep");
    sleep.arg("1000");
    sleep
}

fn write_session(name: &str, mistake: &str) -> io::Result<()> {
    let folder = PathBuf::from(env::var_os("OUTLAST_STATE_DIR").unwrap_or_default()).join(name);
    fs::create_dir_all(&folder)?;
    let file = File::create(folder.join("session"))?;
    file.set_len(SESSION_LEN)?;
    let put = |at: usize, bytes: &[u8]| file.write_all_at(bytes, at as u64);
    if mistake != "unprotected" {
        put(mem::offset_of!(Control, state), &state::PROTECTED.to_le_bytes())?;
        put(mem::offset_of!(Control, commits), &1u64.to_le_bytes())?;
    }
    if mistake == "degraded" {
        put(mem::offset_of!(Control, degradations), &Degradation::StoreFull.bit().to_le_bytes())?;
    }
    put(mem::offset_of!(Control, magic), &MAGIC.to_le_bytes())?;
    // Time to be seen.
    std::thread::sleep(std::time::Duration::from_millis(20));
    Ok(())
}
