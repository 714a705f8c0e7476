//! Code sections that programs name: who does not leave one is found, told of by its name and recovered; nothing else is.

mod support;

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::talk::Talk;
use support::{said, until, Home};

fn begin(home: Home, program: &Path, options: &[&str]) -> Talk<Home> {
    let mut command = home.outlast(["run", "--name", "it", "--hang", "--retries", "1000"]);
    command.args(options);
    Talk::begin(home, command, program)
}

/// Works for as long as it takes to know the program's sections.
fn train(talk: &mut Talk<Home>) {
    for _ in 0..40 {
        talk.ask("work");
        std::thread::sleep(Duration::from_millis(260));
    }
}

/// Has it hang, and work after that: what the log says.
fn hang(talk: &mut Talk<Home>, line: &str) -> String {
    let told = talk.hang(line);
    talk.ask("work");
    told
}

fn api() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../api")
}

fn build(compiler: &str, arguments: &[&str], sources: &[&Path], to: &Path) {
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-Werror", "-pthread", "-I"]).arg(api()).args(arguments);
    let output = command.args(sources).arg("-o").arg(to).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sections").join(name)
}

fn named(home: &Home, compiler: &str) -> PathBuf {
    let program = home.file("named");
    build(compiler, &["-O2"], &[&source("named.c")], &program);
    program
}

#[test]
fn who_stays_in_a_section_that_has_a_name_is_found_by_its_name_and_goes_on() {
    let home = Home::new();
    let program = named(&home, "gcc");
    let mut talk = begin(home, &program, &[]);
    train(&mut talk);
    talk.ask("threads");
    talk.ask("handlers");
    talk.ask("long");
    assert_eq!(talk.hangs(), 0);
    for (line, name) in [("outer", "outer loop"), ("inner", "inner"), ("overlap", "inner"), ("scope", "the last")] {
        let told = hang(&mut talk, &format!("hang {line}"));
        assert!(told.contains(&format!("in the section {name}, where")), "{line}: {told}");
    }
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn a_second_thread_that_stays_in_one_is_found_too() {
    let home = Home::new();
    let program = named(&home, "clang");
    let mut talk = begin(home, &program, &[]);
    train(&mut talk);
    let hangs = talk.hangs();
    talk.ask("thread");
    talk.home.await_event("it", "hung", hangs + 1);
    talk.may_hang(false);
    talk.ask("work");
    let log = talk.home.log("it");
    let told = log.iter().rfind(|entry| entry["event"] == "hung").unwrap()["cause"].to_string();
    assert!(told.contains("in the section inner, where"), "{told}");
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn kills_in_between_change_nothing_and_what_is_often_long_is_no_hang() {
    let home = Home::new();
    let program = named(&home, "gcc");
    let mut talk = begin(home, &program, &[]);
    talk.ask("work");
    for n in 0..20 {
        let line = ["work", "long", "threads", "handlers"][n % 4];
        talk.say(line);
        std::thread::sleep(Duration::from_millis(37 * n as u64 % 300));
        let pid = talk.home.status("it")["pid"].clone();
        support::kill(&pid, libc::SIGKILL);
        talk.home.await_event("it", "recovered", n + 1);
        talk.hear(line);
    }
    assert_eq!(talk.hangs(), 0);
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn a_program_that_nobody_protects_does_the_same() {
    let home = Home::new();
    let program = named(&home, "gcc");
    fs::write(home.file("word"), [0; 4096]).unwrap();
    let mut child =
        Command::new(program).arg(home.file("word")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"work\nthreads\nhandlers\nhang inner\n").unwrap();
    until("its end", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1 work\n2 threads\n3 handlers\n4 hang inner\n");
    assert_eq!(output.status.code(), Some(3));
}

/// Has functions stay.
fn functions_are_sections(mut talk: Talk<Home>, names: [&str; 2]) {
    for _ in 0..60 {
        talk.ask("work");
        std::thread::sleep(Duration::from_millis(260));
    }
    // Of who has left a function by longjmp it is still said to be in it, and others are no less found.
    talk.ask("jump");
    assert_eq!(talk.hangs(), 0, "{:#?}", talk.home.log("it"));
    talk.ask("thread work");
    talk.home.await_event("it", "hung", 1);
    talk.may_hang(false);
    talk.ask("work");
    assert!(talk.causes("hung")[0].contains(&format!("in the section {}", names[0])), "{:?}", talk.causes("hung"));
    for (line, name) in [("hang work", names[0]), ("hang deep", names[1])] {
        let told = hang(&mut talk, line);
        assert!(
            told.contains(&format!("in the section {name}"))
                || line == "hang deep" && told.contains("in the section work"),
            "{line}: {told}"
        );
    }
    assert_eq!(talk.end().code(), Some(3));
}

fn instrumented(compiler: &str, optimized: &str) {
    let home = Home::new();
    let (object, program) = (home.file("sections.o"), home.file("functions"));
    build(compiler, &["-O2", "-x", "c", "-c", "-DOUTLAST_FUNCTIONS"], &[&api().join("outlast_sections.h")], &object);
    build(compiler, &[optimized, "-finstrument-functions"], &[&source("functions.c"), &object], &program);
    functions_are_sections(begin(home, &program, &[]), ["work (", "deep ("]);
}

#[test]
fn functions_that_gcc_has_tell_of_themselves_are_sections() {
    instrumented("gcc", "-O0");
}

#[test]
fn functions_that_clang_has_tell_of_themselves_are_sections() {
    instrumented("clang", "-O2");
}

fn unchanged(home: &Home) -> PathBuf {
    let program = home.file("functions");
    build("gcc", &["-O2"], &[&source("functions.c")], &program);
    program
}

fn may_probe() -> bool {
    // SAFETY: it only asks.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        eprintln!("skipped: breakpoints need root");
    }
    is_root
}

/// A program that knows nothing of it with breakpoints at these functions, unless that is not allowed.
fn probed(sections: &str) -> Option<(Talk<Home>, PathBuf)> {
    may_probe().then(|| {
        let home = Home::new();
        let program = unchanged(&home);
        (begin(home, &program, &["--sections", sections]), program)
    })
}

#[test]
fn functions_of_an_unchanged_program_are_sections_if_a_person_names_them() {
    let Some((talk, _)) = probed("work,deep,leave") else { return };
    functions_are_sections(talk, ["work,", "deep,"]);
}

#[test]
fn kills_with_breakpoints_change_nothing_and_none_stays() {
    let Some((mut talk, _)) = probed("work,deep") else { return };
    talk.ask("work");
    for n in 0..30 {
        talk.say("work");
        std::thread::sleep(Duration::from_millis(13 * n as u64 % 100));
        support::kill(&talk.home.status("it")["pid"], libc::SIGKILL);
        talk.home.await_event("it", "recovered", n + 1);
        talk.hear("work");
    }
    assert_eq!(talk.hangs(), 0);
    assert_eq!(talk.end().code(), Some(3));
}

fn module(home: &Home, words: &[&str]) {
    let output = home.outlast(["module"]).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", said(&output));
}

/// The first byte of a function, as it is in the program's memory.
fn first_byte(pid: &serde_json::Value, program: &Path, function: &str) -> u8 {
    let symbols = Command::new("nm").arg(program).output().unwrap();
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let line = symbols.lines().find(|line| line.ends_with(&format!(" {function}"))).unwrap();
    let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let base = maps.lines().find(|line| line.ends_with(program.to_str().unwrap())).unwrap();
    let base = u64::from_str_radix(base.split('-').next().unwrap(), 16).unwrap();
    let mut byte = [0];
    fs::File::open(format!("/proc/{pid}/mem")).unwrap().read_exact_at(&mut byte, base + address).unwrap();
    byte[0]
}

#[test]
fn without_the_module_there_are_no_breakpoints() {
    const BREAKPOINT: u8 = 0xcc;
    let Some((mut talk, program)) = probed("work,deep") else { return };
    talk.ask("work");
    let pid = talk.home.status("it")["pid"].clone();
    assert_eq!(first_byte(&pid, &program, "work"), BREAKPOINT);
    module(&talk.home, &["remove", "hang", "it"]);
    until("the end of the breakpoints", || first_byte(&pid, &program, "work") != BREAKPOINT);
    talk.ask("work");
    // Of one that was not there, nothing is kept.
    module(&talk.home, &["add", "hang", "it", "--sections", "deep"]);
    until("breakpoints again", || first_byte(&pid, &program, "deep") == BREAKPOINT);
    assert_ne!(first_byte(&pid, &program, "work"), BREAKPOINT);
    talk.ask("work");
    let refused = talk.home.outlast(["module", "add", "hang", "it", "--sections", "work,absent"]).output().unwrap();
    assert!(!refused.status.success() && said(&refused).contains("section absent"), "{}", said(&refused));
    assert_eq!(first_byte(&pid, &program, "deep"), BREAKPOINT);
    module(&talk.home, &["add", "hang", "it", "--hang=20s"]);
    assert_eq!(first_byte(&pid, &program, "deep"), BREAKPOINT);
    module(&talk.home, &["add", "hang", "it", "--no-sections"]);
    until("the end of the breakpoints", || first_byte(&pid, &program, "deep") != BREAKPOINT);
    talk.ask("work");
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn functions_of_a_running_program_become_sections() {
    if !may_probe() {
        return;
    }
    let home = Home::new();
    let program = unchanged(&home);
    let run = home.outlast(["run", "--name", "it", "--retries", "1000"]);
    let mut talk = Talk::begin(home, run, &program);
    talk.ask("work");
    module(&talk.home, &["add", "hang", "it", "--sections", "work,deep,leave"]);
    functions_are_sections(talk, ["work,", "deep,"]);
}

#[test]
fn what_cannot_be_probed_is_said_before_the_program_begins() {
    let home = Home::new();
    let program = unchanged(&home);
    let mut run = home.outlast(["run", "--hang", "--sections", "work,absent", "--"]);
    let output = run.arg(&program).arg("nothing").output().unwrap();
    let (code, told) = (output.status.code(), said(&output));
    assert!(code == Some(1) && told.contains("section absent"), "{code:?}: {told}");
    let output = home.outlast(["run", "--sections", "work", "--", "true"]).output().unwrap();
    assert!(said(&output).contains("--hang"), "{}", said(&output));
}

#[test]
fn a_program_in_rust_has_sections_by_the_crate() {
    let home = Home::new();
    let rustc = |arguments: &[&str], source: &Path| {
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2021", "-O", "--cap-lints", "warn"]).args(arguments).arg(source);
        let output = rustc.arg("--out-dir").arg(home.path()).arg("-L").arg(home.path()).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    };
    rustc(
        &["--crate-type", "rlib", "--crate-name", "outlast_api", "--cfg", "feature=\"std\""],
        &api().join("src/lib.rs"),
    );
    rustc(&["--extern", "outlast_api"], &source("named.rs"));
    let program = home.file("named");
    let mut talk = begin(home, &program, &[]);
    train(&mut talk);
    talk.ask("threads");
    let told = hang(&mut talk, "hang");
    assert!(told.contains("in the section a step of it, where"), "{told}");
    assert_eq!(talk.end().code(), Some(3));
}
