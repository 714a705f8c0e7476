//! A program of which every output is looked at: `outputs.c`.

use crate::support::{said, until, Home};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What was seen of one stream.
#[derive(Default)]
struct Seen {
    /// Read, and not yet a whole record.
    rest: Vec<u8>,
    last: Option<u64>,
    /// Bytes that were read.
    bytes: u64,
    /// What comes may be what came, but nothing up to this; and that only before so many bytes.
    floor: Option<Option<u64>>,
    until: u64,
    wrong: Option<String>,
}

pub struct Streams<'h> {
    home: &'h Home,
    child: Child,
    seen: Vec<Arc<Mutex<Seen>>>,
    queued: Vec<i32>,
    files: Vec<PathBuf>,
}

impl Seen {
    fn take(&mut self, bytes: &[u8]) {
        self.rest.extend(bytes);
        self.bytes += bytes.len() as u64;
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let record: Vec<u8> = self.rest.drain(..=end).collect();
            let text = String::from_utf8_lossy(&record);
            let number = text.split(' ').next().and_then(|word| word.parse::<u64>().ok());
            let (Some(n), true) = (number, [16, 3000].contains(&record.len())) else {
                self.wrong.get_or_insert(format!("after {:?}: {} bytes, {:.40}", self.last, record.len(), text));
                continue;
            };
            if self.bytes - self.rest.len() as u64 > self.until {
                self.floor = None;
            }
            let next = self.last.map_or(0, |last| last + 1);
            let may = n == next || n < next && self.floor.is_some_and(|floor| floor.is_none_or(|floor| n > floor));
            if !may {
                self.wrong.get_or_insert(format!("{n} after {:?}, nothing up to {:?} again", self.last, self.floor));
            }
            self.last = Some(n);
        }
    }
}

impl<'h> Streams<'h> {
    pub fn begin(home: &'h Home, threads: bool, options: &[&str]) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/modules/outputs.c");
        let program = home.file("outputs");
        let output =
            Command::new("gcc").args(["-O2", "-Wall", "-pthread", "-o"]).arg(&program).arg(source).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let files: Vec<PathBuf> =
            ["first", "second"][..1 + usize::from(threads)].iter().map(|name| home.file(name)).collect();
        let mut command = home.outlast(["run", "--name", "it"]);
        command.args(options).arg("--").arg(program).args(&files).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut first, mut second) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let seen: Vec<_> = files.iter().map(|_| Arc::new(Mutex::new(Seen::default()))).collect();
        let mut queued = vec![first.as_raw_fd()];
        let of_first = seen[0].clone();
        thread::spawn(move || read(&mut first, &of_first, Duration::ZERO));
        if let Some(of_second) = seen.get(1).cloned() {
            queued.push(second.as_raw_fd());
            thread::spawn(move || read(&mut second, &of_second, Duration::from_micros(500)));
        }
        home.await_protected("it");
        Self { home, child, seen, queued, files }
    }

    /// From here on what comes may have come, but not before this.
    pub fn may_repeat(&self) {
        for seen in &self.seen {
            let mut seen = seen.lock().unwrap();
            (seen.floor, seen.until) = (Some(seen.last), u64::MAX);
        }
    }

    /// From here on no more: what is on its way has been read before that.
    pub fn may_not_repeat(&self) {
        for (seen, fd) in self.seen.iter().zip(&self.queued) {
            let queued = queued(*fd) as u64;
            let mut seen = seen.lock().unwrap();
            // What is in the reader's hands besides.
            seen.until = seen.bytes + queued + 3000;
        }
    }

    /// All that was seen was right, and it goes on.
    pub fn check(&self, round: usize) {
        for (seen, file) in self.seen.iter().zip(&self.files) {
            let before = seen.lock().unwrap().last;
            until("more output", || seen.lock().unwrap().last > before);
            let wrong = seen.lock().unwrap().wrong.clone();
            assert!(wrong.is_none(), "round {round}, {}: {}", file.display(), wrong.unwrap());
        }
    }

    /// Ends it; what the files hold is what was seen.
    pub fn end(mut self) {
        self.check(usize::MAX);
        let output = self.home.outlast(["stop", "it", "--timeout", "1ms"]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        self.child.wait().unwrap();
        for file in &self.files {
            let text = std::fs::read_to_string(file).unwrap();
            let numbers: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
            let wrong = numbers.iter().enumerate().find(|(n, number)| *n as u64 != **number);
            assert!(wrong.is_none() && numbers.len() > 100, "{}: {wrong:?} of {}", file.display(), numbers.len());
        }
    }
}

fn read(from: &mut impl Read, seen: &Mutex<Seen>, pause: Duration) {
    let mut bytes = [0; 3000];
    while let Ok(n @ 1..) = from.read(&mut bytes) {
        seen.lock().unwrap().take(&bytes[..n]);
        thread::sleep(pause);
    }
}

/// Bytes in a pipe.
fn queued(fd: i32) -> i32 {
    let mut n = 0;
    // SAFETY: FIONREAD writes an int; a descriptor that is closed meanwhile is refused.
    unsafe { libc::ioctl(fd, libc::FIONREAD, &raw mut n) };
    n
}
