//! Builds the small programs in `programs/` with the C and C++ compilers of the system.
//!
//! `NAME.c` becomes `NAME` and, statically linked, `NAME-static`; `NAME.cc` only `NAME`; scripts are copied. Go and Java are
//! compiled where their compilers are: cases that need them are skipped elsewhere.

use outlast_filter::needs::{wish, Need, CONNECTION, ENTRY, NEEDS};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that need a library beside libc.
const LIBRARIES: &[(&str, &[&str])] =
    &[("game", &["-lncurses", "-ltinfo"]), ("openmp", &["-fopenmp"]), ("codes", &["-ldl"]), ("collected", &["-lgc"])];

/// Programs that are only made where this header is: their cases are skipped elsewhere.
const HEADERS: &[(&str, &str)] = &[("collected", "/usr/include/gc.h")];

const GO: &str = "/usr/bin/go";
const JAVAC: &str = "/usr/bin/javac";

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("programs");
    fs::create_dir_all(&out).expect("make a directory for the programs");
    println!("cargo:rerun-if-changed=programs");
    println!("cargo:rustc-env=CASES_PROGRAMS={}", out.display());
    write_needs(&needs_of(&out));
    for entry in fs::read_dir("programs").expect("list programs/") {
        let source = entry.expect("list programs/").path();
        match source.extension().and_then(|e| e.to_str()) {
            Some("c") => build_c(&source, &out),
            Some("py" | "pl" | "lua" | "lisp" | "js") => copy(&source, &out),
            Some("go") => build_go(&source, &out),
            Some("java") => build_java(&source, &out),
            Some("cc") => compile("g++", &source, &out.join(stem(&source)), &[]),
            _ => {}
        }
    }
}

/// Not beside the programs, one of which may have the name of a header.
fn needs_of(out: &Path) -> PathBuf {
    out.with_file_name("include").join("needs.h")
}

/// The calls that the engine makes, for a program that forbids itself all others.
fn write_needs(to: &Path) {
    let row = |need: &Need| {
        let (arg, values) = need.only.unwrap_or((0, &[]));
        let list: Vec<String> = values.iter().map(|value| format!("{value:#x}u")).collect();
        format!("    {{{}, {arg}, {}, {{{}}}}},\n", need.nr, values.len(), list.join(", "))
    };
    let rows = |needs: &[Need]| needs.iter().map(row).collect::<String>();
    let (needs, entry, connection) = (rows(NEEDS), rows(ENTRY), rows(CONNECTION));
    let wishes: Vec<String> = wish::ALL.iter().map(u32::to_string).collect();
    let text = format!(
        "struct need {{ int nr, arg, count; unsigned values[16]; }};\n\
         static const struct need NEEDS[] = {{\n{needs}}};\n\
         static const struct need ENTRY[] = {{\n{entry}}};\n\
         static const struct need CONNECTION[] = {{\n{connection}}};\n\
         static const int WISHES[] = {{{}}};\n",
        wishes.join(", ")
    );
    fs::create_dir_all(to.parent().expect("it lies in a folder")).expect("make a directory for the header");
    if fs::read_to_string(to).ok().as_ref() != Some(&text) {
        fs::write(to, text).expect("write needs.h");
    }
}

fn build_c(source: &Path, out: &Path) {
    let name = stem(source);
    if let Some((_, header)) = HEADERS.iter().find(|(n, _)| *n == name) {
        println!("cargo:rerun-if-changed={header}");
        if !Path::new(header).exists() {
            return;
        }
    }
    let libraries = LIBRARIES.iter().find(|(n, _)| *n == name).map_or(&[][..], |(_, l)| l);
    compile("gcc", source, &out.join(&name), libraries);
    if libraries.is_empty() {
        compile("gcc", source, &out.join(format!("{name}-static")), &["-static"]);
    }
}

/// Statically linked, as Go's own servers mostly are.
fn build_go(source: &Path, out: &Path) {
    let to = out.join(stem(source));
    let mut compiler = Command::new(GO);
    compiler
        .args(["build", "-o"])
        .arg(&to)
        .arg(source)
        .env("CGO_ENABLED", "0")
        .env("GOCACHE", out.with_file_name("go"));
    run_if_there(&mut compiler, source, &to);
}

fn build_java(source: &Path, out: &Path) {
    let to = out.join(format!("{}.class", stem(source)));
    run_if_there(Command::new(JAVAC).arg("-d").arg(out).arg(source), source, &to);
}

/// Runs a compiler that may be missing, if `source` is newer than `to`.
fn run_if_there(compiler: &mut Command, source: &Path, to: &Path) {
    let path = Path::new(compiler.get_program()).to_path_buf();
    println!("cargo:rerun-if-changed={}", path.display());
    if path.exists() && !is_newer(to, source) {
        let status = compiler.status().unwrap_or_else(|e| panic!("cannot run {}: {e}", path.display()));
        assert!(status.success(), "{} failed on {}", path.display(), source.display());
    }
}

fn copy(source: &Path, out: &Path) {
    let to = out.join(source.file_name().expect("a source file has a name"));
    fs::copy(source, &to).unwrap_or_else(|e| panic!("copy {} to {}: {e}", source.display(), to.display()));
}

fn compile(compiler: &str, source: &Path, to: &Path, more: &[&str]) {
    let needs = needs_of(to.parent().expect("programs lie in a folder"));
    // A header may include another.
    if is_newer(to, source) && is_newer(to, &needs) && headers().all(|header| is_newer(to, &header)) {
        return;
    }
    let status = Command::new(compiler)
        .arg("-I")
        .arg(needs.parent().expect("it lies in a folder"))
        .args(["-O2", "-g0", "-pthread", "-Wall", "-Wextra", "-Werror", "-Wno-format-truncation", "-o"])
        .arg(to)
        .arg(source)
        .args(more)
        .status()
        .unwrap_or_else(|e| panic!("cannot run {compiler} ({e}): install it with `make install-deps`"));
    assert!(status.success(), "{compiler} failed on {}", source.display());
}

fn headers() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("programs").expect("list programs/");
    entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.extension().is_some_and(|e| e == "h"))
}

/// Whether `a` is there and was changed after `b`.
fn is_newer(a: &Path, b: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|meta| meta.modified()).ok();
    changed(a).is_some_and(|a| changed(b).is_some_and(|b| a > b))
}

fn stem(path: &Path) -> String {
    path.file_stem().expect("a source file has a name").to_string_lossy().into_owned()
}
