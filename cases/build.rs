//! Builds the small programs in `programs/` with the C and C++ compilers of the system.
//!
//! `NAME.c` becomes `NAME` and, statically linked, `NAME-static`; `NAME.cc` only `NAME`; scripts are copied.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that need a library beside libc.
const LIBRARIES: &[(&str, &[&str])] =
    &[("game", &["-lncurses", "-ltinfo"]), ("openmp", &["-fopenmp"]), ("codes", &["-ldl"])];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("programs");
    fs::create_dir_all(&out).expect("make a directory for the programs");
    println!("cargo:rerun-if-changed=programs");
    println!("cargo:rustc-env=CASES_PROGRAMS={}", out.display());
    for entry in fs::read_dir("programs").expect("list programs/") {
        let source = entry.expect("list programs/").path();
        match source.extension().and_then(|e| e.to_str()) {
            Some("c") => build_c(&source, &out),
            Some("py" | "pl" | "lua" | "lisp") => copy(&source, &out),
            Some("cc") => compile("g++", &source, &out.join(stem(&source)), &[]),
            _ => {}
        }
    }
}

fn build_c(source: &Path, out: &Path) {
    let name = stem(source);
    let libraries = LIBRARIES.iter().find(|(n, _)| *n == name).map_or(&[][..], |(_, l)| l);
    compile("gcc", source, &out.join(&name), libraries);
    if libraries.is_empty() {
        compile("gcc", source, &out.join(format!("{name}-static")), &["-static"]);
    }
}

fn copy(source: &Path, out: &Path) {
    let to = out.join(source.file_name().expect("a source file has a name"));
    fs::copy(source, &to).unwrap_or_else(|e| panic!("copy {} to {}: {e}", source.display(), to.display()));
}

fn compile(compiler: &str, source: &Path, to: &Path, more: &[&str]) {
    let newer = |a: &Path, b: &Path| Some(a.metadata().ok()?.modified().ok()? > b.metadata().ok()?.modified().ok()?);
    if newer(to, source) == Some(true) {
        return;
    }
    let status = Command::new(compiler)
        .args(["-O2", "-g0", "-pthread", "-Wall", "-Wextra", "-Werror", "-Wno-format-truncation", "-o"])
        .arg(to)
        .arg(source)
        .args(more)
        .status()
        .unwrap_or_else(|e| panic!("cannot run {compiler} ({e}): install it with `make install-deps`"));
    assert!(status.success(), "{compiler} failed on {}", source.display());
}

fn stem(path: &Path) -> String {
    path.file_stem().expect("a source file has a name").to_string_lossy().into_owned()
}
