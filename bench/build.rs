//! Builds the small programs that are measured, with the C compiler of the system.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A game is measured that the cases have already.
const GAME: &str = "../cases/programs/game.c";
/// A client that a campaign has already.
const SESSIONS: &str = "../campaigns/web/sessions.c";

/// Functions tell of themselves, but for those in headers.
const TELLING: &[&str] = &["-finstrument-functions", "-finstrument-functions-exclude-file-list=.h"];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("programs");
    fs::create_dir_all(&out).expect("make a folder for the programs");
    println!("cargo:rerun-if-changed=programs");
    println!("cargo:rerun-if-changed={GAME}");
    println!("cargo:rerun-if-changed={SESSIONS}");
    println!("cargo:rerun-if-changed=../crates/api");
    println!("cargo:rustc-env=BENCH_PROGRAMS={}", out.display());
    for entry in fs::read_dir("programs").expect("list programs/") {
        let source = entry.expect("list programs/").path();
        if source.extension().is_some_and(|e| e == "c") {
            let text = fs::read_to_string(&source).expect("read a program");
            compile(&source, &out, if text.contains("<omp.h>") { &["-fopenmp"] } else { &[] });
        }
    }
    compile(Path::new(GAME), &out, &["-lncurses", "-ltinfo"]);
    compile(Path::new(SESSIONS), &out, &[]);
}

fn compile(source: &Path, out: &Path, libraries: &[&str]) {
    let name = source.file_stem().expect("a source file has a name").to_string_lossy();
    // What is loaded before a program, to have chance the same in every run.
    let preloaded = name.starts_with("lib");
    let status = Command::new("gcc")
        .args(["-O2", "-g0", "-Wall", "-Wextra", "-Werror"])
        .args(if preloaded { &["-shared", "-fPIC"][..] } else { &[] })
        .args(if name == "sections" { TELLING } else { &[] })
        .arg("-o")
        .arg(out.join(if preloaded { format!("{name}.so") } else { name.into_owned() }))
        .arg(source)
        .args(libraries)
        .status()
        .unwrap_or_else(|e| panic!("cannot run gcc ({e}): install it with `make install-deps`"));
    assert!(status.success(), "gcc failed on {}", source.display());
}
