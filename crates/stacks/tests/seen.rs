//! Stacks of a real program that waits in known functions.

use outlast_stacks::{At, Frame, Process};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};

/// `inner` waits; `deep` has so many frames that not all are looked for.
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) int inner(volatile int *n) { puts("waits"); fflush(stdout); pause(); return *n; }
__attribute__((noinline)) int outer(volatile int *n) { return inner(n) + *n; }
__attribute__((noinline)) int deep(volatile int *n) { return --*n ? deep(n) + *n : outer(n); }
int main(int argc, char **argv) { volatile int n = atoi(argv[argc - 1]); return deep(&n) + n; }
"#;

struct Program(Child);

impl Program {
    fn start(folder: &std::path::Path, depth: &str) -> Self {
        let (source, program) = (folder.join("program.c"), folder.join("program"));
        std::fs::write(&source, SOURCE).unwrap();
        let options = ["-O2", "-fno-optimize-sibling-calls", "-fomit-frame-pointer", "-o"];
        assert!(Command::new("gcc").args(options).args([&program, &source]).status().unwrap().success());
        let mut child = Command::new(program).arg(depth).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let stat = || std::fs::read_to_string(format!("/proc/{}/syscall", child.id())).unwrap();
        while !stat().starts_with(&format!("{} ", libc::SYS_pause)) {
            std::thread::yield_now();
        }
        Self(child)
    }

    fn at(&self) -> At {
        let call = std::fs::read_to_string(format!("/proc/{}/syscall", self.0.id())).unwrap();
        let words: Vec<u64> =
            call.split_whitespace().filter_map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()).collect();
        let [.., sp, ip] = words[..] else { panic!("{call}") };
        At { ip, sp, bp: 0 }
    }

    /// And whether these are all.
    fn functions(&self) -> (Vec<String>, bool) {
        let pid = self.0.id() as i32;
        let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
        let word = |address: u64| {
            let mut bytes = [0; 8];
            memory.read_exact_at(&mut bytes, address).ok().map(|()| u64::from_ne_bytes(bytes))
        };
        let stack = Process::look(pid).stack(self.at(), word);
        let name = |frame: &Frame| frame.function.as_ref().map_or("?", |(name, _)| name.as_str()).to_string();
        (stack.frames.iter().map(name).collect(), stack.is_whole)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn functions_are_named_from_the_innermost_to_main_without_frame_pointers() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path(), "3");
    let (functions, is_whole) = program.functions();
    assert!(is_whole, "{functions:?}");
    let own: Vec<&str> = functions.iter().map(String::as_str).filter(|name| !name.starts_with('_')).collect();
    assert!(
        own.ends_with(&["inner", "outer", "deep", "deep", "deep", "main"])
            || own.windows(6).any(|six| six == ["inner", "outer", "deep", "deep", "deep", "main"]),
        "{functions:?}"
    );
}

#[test]
fn a_stack_of_very_many_frames_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path(), "10000");
    let (functions, is_whole) = program.functions();
    assert!(!is_whole && functions.len() == 64 && functions.last().unwrap() == "deep", "{functions:?}");
}

#[test]
fn nonsense_ends_a_stack_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path(), "1");
    let mut process = Process::look(program.0.id() as i32);
    for at in [At { ip: 0, sp: 0, bp: 0 }, At { ip: 1 << 46, sp: u64::MAX, bp: u64::MAX }, program.at()] {
        assert!(process.stack(at, |_| None).frames.len() <= 1);
        assert!(process.stack(at, Some).frames.len() <= 64);
    }
    assert!(Process::look(i32::MAX).stack(program.at(), |_| None).frames.len() <= 1);
}
