//! A target that is not the process that is started, but one of its descendants: the instance of a component, say, which its manager
//! has started and which is another one after each micro-reboot.

use crate::ptrace::threads_of;
use libc::pid_t;
use std::cell::Cell;
use std::fs::read_to_string;

pub struct Descendant {
    /// How its command line ends.
    command: String,
    /// The one that was found last.
    found: Cell<Option<pid_t>>,
}

impl Descendant {
    pub fn new(command: &str) -> Self {
        Self { command: command.into(), found: Cell::new(None) }
    }

    /// The deepest below that process: where a process serves by children, the children.
    pub fn of(&self, top: pid_t) -> Option<pid_t> {
        let known = self.found.get().filter(|pid| self.is_it(*pid));
        if known.is_none() {
            let mut below = vec![top];
            let mut at = 0;
            // Nearer ones come first.
            while let Some(pid) = below.get(at).copied() {
                below.extend(children(pid));
                at += 1;
            }
            let found = below[1..].iter().copied().rev().find(|pid| self.is_it(*pid));
            self.found.set(found);
        }
        self.found.get()
    }

    fn is_it(&self, pid: pid_t) -> bool {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        // A process that has ended has no words.
        words.join(" ").trim_end().ends_with(&self.command) && !words[0].is_empty()
    }
}

fn children(pid: pid_t) -> Vec<pid_t> {
    let of_thread = |tid: &pid_t| read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    let all: Vec<String> = threads_of(pid).iter().map(of_thread).collect();
    all.iter().flat_map(|text| text.split_whitespace()).filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_deepest_that_is_called_so_is_found_and_the_next_when_it_has_ended() {
        let script = "sleep 1000 & read x; kill $!; wait $!; sleep 1000.0 & read x; kill $!";
        let mut shell = Command::new("sh")
            .args(["-c", &format!("sh -c '{script}'; exit 7")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("a shell");
        let top = shell.id() as pid_t;
        let by = |name: &str| {
            let descendant = Descendant::new(name);
            let found = std::iter::repeat_with(|| descendant.of(top)).find_map(|found| {
                std::thread::sleep(std::time::Duration::from_millis(1));
                found
            });
            (descendant, found.expect("it begins"))
        };
        let (descendant, first) = by("sleep 1000");
        let input = shell.stdin.as_mut().expect("a pipe");
        std::io::Write::write_all(input, b"\n").expect("a line");
        let (_, second) = by("sleep 1000.0");
        assert!(first != second && descendant.of(top).is_none_or(|pid| pid != first));
        std::io::Write::write_all(input, b"\n").expect("a line");
        assert_eq!(shell.wait().expect("a child").code(), Some(7));
    }
}
