//! A conversation with a program that answers each line with its number and the line, named `it`. Lines of some kinds have it hang, for as
//! long as the file `word` says so.

use super::{said, Home};
use std::borrow::Borrow;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

pub struct Talk<H: Borrow<Home>> {
    pub home: H,
    pub child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    asked: u32,
}

/// The program in hangs/answers.c.
pub fn answers(home: &Home) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hangs/answers.c");
    let program = home.file("answers");
    let output = Command::new("gcc").args(["-O2", "-Wall", "-pthread", "-o"]).arg(&program).arg(source).output();
    assert!(output.as_ref().unwrap().status.success(), "{}", said(&output.unwrap()));
    program
}

impl<H: Borrow<Home>> Talk<H> {
    /// Begins with this program, by a command that says how it is protected.
    pub fn begin(home: H, mut command: Command, program: &Path) -> Self {
        let word = home.borrow().file("word");
        command.arg("--").arg(program).arg(&word);
        fs::write(word, [1; 4096]).unwrap();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { home, child, to, from, asked: 0 }
    }

    pub fn say(&mut self, line: &str) {
        self.asked += 1;
        writeln!(self.to.as_ref().unwrap(), "{line}").unwrap();
    }

    /// Reads the answer to what was said last.
    pub fn hear(&mut self, line: &str) {
        let mut answer = String::new();
        self.from.read_line(&mut answer).unwrap();
        assert_eq!(answer, format!("{} {line}\n", self.asked), "{:#?}", self.home.borrow().log("it"));
    }

    pub fn ask(&mut self, line: &str) {
        self.say(line);
        self.hear(line);
    }

    /// Whether what is to hang does, also what hangs already, once it has been recovered.
    pub fn may_hang(&self, may: bool) {
        // In place: whoever reads it, or has it mapped, is never to find it shorter.
        let word = fs::File::options().write(true).open(self.home.borrow().file("word")).unwrap();
        word.write_all_at(&[u8::from(may); 4096], 0).unwrap();
    }

    /// Causes in the log, of events of this kind.
    pub fn causes(&self, event: &str) -> Vec<String> {
        let log = self.home.borrow().log("it");
        log.iter().filter(|e| e["event"] == event).map(|e| e["cause"].as_str().unwrap_or_default().into()).collect()
    }

    pub fn hangs(&self) -> usize {
        self.causes("hung").len()
    }

    /// Has it hang by this line, ends that once it was found, and awaits that it goes on: what the log says.
    pub fn hang(&mut self, line: &str) -> String {
        let hangs = self.hangs();
        self.may_hang(true);
        self.say(line);
        self.home.borrow().await_event("it", "hung", hangs + 1);
        self.may_hang(false);
        self.hear(line);
        self.may_hang(true);
        self.causes("hung").pop().unwrap()
    }

    pub fn end(mut self) -> ExitStatus {
        drop(self.to.take());
        self.child.wait().unwrap()
    }
}
