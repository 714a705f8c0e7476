//! The outside view: everything a person who looks at a program from outside can see of its run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use crate::difference::Difference;
use crate::failure::{Outcome, Tried};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Exited(i32),
    Signalled(i32),
    /// Nobody was there to take it: the supervisor had been killed.
    Unseen,
}

impl From<ExitStatus> for Status {
    fn from(status: ExitStatus) -> Status {
        match (status.code(), status.signal()) {
            (Some(code), _) => Status::Exited(code),
            (None, Some(signal)) => Status::Signalled(signal),
            (None, None) => Status::Unseen,
        }
    }
}

/// A file the program left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub mode: u32,
    /// Contents of a regular file, the target of a link, nothing for anything else.
    pub contents: Vec<u8>,
}

/// Everything that can be seen of a run.
#[derive(Clone, Debug)]
pub struct View {
    pub status: Status,
    /// Byte streams by name: "stdout", "stderr", "client 0" …
    pub streams: BTreeMap<String, Vec<u8>>,
    /// Screens by the name of the moment they were looked at.
    pub screens: BTreeMap<String, String>,
    /// Files by path relative to the program's directory.
    pub files: BTreeMap<String, Left>,
}

impl View {
    /// The first difference from the unharmed run; `None` if nobody can tell.
    pub fn differs_from(&self, unharmed: &View) -> Option<Difference> {
        by_name(&unharmed.streams, &self.streams, "stream", |name, a, b| Difference::of_bytes(name, a, b))
            .or_else(|| {
                by_name(&unharmed.screens, &self.screens, "screen", |name, a, b| Difference::of_texts(name, a, b))
            })
            .or_else(|| {
                by_name(&unharmed.files, &self.files, "file", |name, a, b| {
                    Difference::of_bytes(name, &a.contents, &b.contents)
                        .or_else(|| Difference::of_values(&format!("mode of {name}"), &a.mode, &b.mode))
                })
            })
            .or_else(|| self.status_differs_from(unharmed))
    }

    /// Takes the last line off a stream if it holds `words`. False: it does not.
    pub fn take_off_last_line(&mut self, stream: &str, words: &str) -> bool {
        let Some(bytes) = self.streams.get_mut(stream) else { return false };
        let start =
            bytes.strip_suffix(b"\n").and_then(|rest| rest.iter().rposition(|b| *b == b'\n')).map_or(0, |n| n + 1);
        let holds = String::from_utf8_lossy(&bytes[start..]).contains(words);
        if holds {
            bytes.truncate(start);
        }
        holds
    }

    fn status_differs_from(&self, unharmed: &View) -> Option<Difference> {
        if self.status == Status::Unseen {
            return None;
        }
        Difference::of_values("exit status", &unharmed.status, &self.status)
    }
}

fn by_name<T>(
    unharmed: &BTreeMap<String, T>,
    seen: &BTreeMap<String, T>,
    kind: &str,
    compare: impl Fn(&str, &T, &T) -> Option<Difference>,
) -> Option<Difference> {
    for (name, expected) in unharmed {
        let place = format!("{kind} {name}");
        let difference = match seen.get(name) {
            Some(value) => compare(&place, expected, value),
            None => Difference::of_values(&place, &"present", &"missing"),
        };
        if difference.is_some() {
            return difference;
        }
    }
    let extra = seen.keys().find(|name| !unharmed.contains_key(*name))?;
    Difference::of_values(&format!("{kind} {extra}"), &"missing", &"present")
}

/// Reads what is in `dir`, recursively.
pub fn files_in(dir: &Path) -> Outcome<BTreeMap<String, Left>> {
    let mut found = BTreeMap::new();
    collect(dir, "", &mut found)?;
    Ok(found)
}

fn collect(dir: &Path, prefix: &str, found: &mut BTreeMap<String, Left>) -> Outcome<()> {
    for entry in fs::read_dir(dir).tried_on("list", dir)? {
        let entry = entry.tried_on("list", dir)?;
        let path = entry.path();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let meta = fs::symlink_metadata(&path).tried_on("look at", &path)?;
        let kind = meta.file_type();
        if kind.is_dir() {
            collect(&path, &format!("{name}/"), found)?;
        }
        let contents = if kind.is_file() {
            fs::read(&path).tried_on("read", &path)?
        } else if kind.is_symlink() {
            fs::read_link(&path).tried_on("read", &path)?.into_os_string().into_encoded_bytes()
        } else {
            Vec::new()
        };
        found.insert(name, Left { mode: meta.permissions().mode(), contents });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(stdout: &[u8]) -> View {
        View {
            status: Status::Exited(0),
            streams: BTreeMap::from([("stdout".to_string(), stdout.to_vec())]),
            screens: BTreeMap::new(),
            files: BTreeMap::from([("log".to_string(), Left { mode: 0o100644, contents: b"1\n".to_vec() })]),
        }
    }

    #[test]
    fn equal_views_do_not_differ() {
        assert_eq!(view(b"1\n2\n").differs_from(&view(b"1\n2\n")), None);
    }

    #[test]
    fn a_repeated_line_differs() {
        assert!(view(b"1\n1\n2\n").differs_from(&view(b"1\n2\n")).is_some());
    }

    #[test]
    fn another_status_differs() {
        let mut seen = view(b"");
        seen.status = Status::Signalled(9);
        assert!(seen.differs_from(&view(b"")).is_some());
    }

    #[test]
    fn a_missing_and_an_extra_file_differ() {
        let mut seen = view(b"");
        seen.files.clear();
        assert!(seen.differs_from(&view(b"")).is_some());
        assert!(view(b"").differs_from(&seen).is_some());
    }

    #[test]
    fn another_mode_differs() {
        let mut seen = view(b"");
        seen.files.get_mut("log").unwrap().mode = 0o100600;
        assert!(seen.differs_from(&view(b"")).is_some());
    }
}
