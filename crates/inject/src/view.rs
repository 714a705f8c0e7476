//! What can be seen of a run from outside: status, what it printed, the files that it left.

use crate::error::{on, Error};
use outlast_supervisor::end::End;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub end: Option<End>,
    /// By name: `stdout`, `file x`; files with their mode before their contents.
    pub parts: BTreeMap<String, Vec<u8>>,
}

impl View {
    /// Takes off the lines that outlast itself writes to standard error: the program did not.
    pub fn without_what_outlast_says(&mut self) {
        if let Some(stderr) = self.parts.get_mut("stderr") {
            let kept = stderr.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"outlast: "));
            *stderr = kept.flatten().copied().collect();
        }
    }

    /// The first part that differs, but for those that vary by themselves.
    pub fn differs_from(&self, other: &View, varying: &BTreeSet<String>) -> Option<String> {
        let names: BTreeSet<&String> = self.parts.keys().chain(other.parts.keys()).collect();
        names.into_iter().find(|name| !varying.contains(*name) && self.parts.get(*name) != other.parts.get(*name)).map(
            |name| match (self.parts.get(name), other.parts.get(name)) {
                (Some(seen), Some(expected)) => {
                    let at = seen.iter().zip(expected).take_while(|(a, b)| a == b).count();
                    format!("{name}: byte {at} of {}, expected {}", seen.len(), expected.len())
                }
                (None, _) => format!("{name}: missing"),
                (_, None) => format!("{name}: not expected"),
            },
        )
    }
}

/// The largest file that is compared whole.
const LARGEST: u64 = 256 << 20;

/// Adds all that lies in a folder.
pub fn add_files(parts: &mut BTreeMap<String, Vec<u8>>, folder: &Path, prefix: &str) -> Result<(), Error> {
    for entry in std::fs::read_dir(folder).map_err(on("list", folder))? {
        let path = entry.map_err(on("list", folder))?.path();
        let Some(file) = path.file_name() else { continue };
        let name = format!("{prefix}{}", file.to_string_lossy());
        let meta = std::fs::symlink_metadata(&path).map_err(on("look at", &path))?;
        let mut seen = format!("{:o} ", meta.permissions().mode()).into_bytes();
        if meta.is_dir() {
            add_files(parts, &path, &format!("{name}/"))?;
        } else if meta.is_symlink() {
            seen.extend(std::fs::read_link(&path).map_err(on("read", &path))?.into_os_string().into_vec());
        } else if meta.is_file() && meta.len() <= LARGEST {
            seen.extend(std::fs::read(&path).map_err(on("read", &path))?);
        } else {
            seen.extend(meta.len().to_string().into_bytes());
        }
        parts.insert(format!("file {name}"), seen);
    }
    Ok(())
}

/// How a run ended, in words.
pub fn ending(end: Option<End>) -> String {
    match end {
        Some(End::Exited(status)) => format!("exit {status}"),
        Some(End::Killed(signal)) => crate::call_numbers::signal_name(signal),
        None => "did not end".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(stdout: &[u8]) -> View {
        View { end: Some(End::Exited(0)), parts: BTreeMap::from([("stdout".into(), stdout.to_vec())]) }
    }

    #[test]
    fn what_outlast_says_is_not_what_the_program_says() {
        let mut view = View { end: None, parts: BTreeMap::from([("stderr".into(), b"a\noutlast: x\nb".to_vec())]) };
        view.without_what_outlast_says();
        assert_eq!(view.parts["stderr"], b"a\nb");
    }

    #[test]
    fn a_difference_is_found_where_it_begins_unless_it_varies_by_itself() {
        let varying = BTreeSet::from(["stdout".to_string()]);
        assert_eq!(view(b"abc").differs_from(&view(b"abc"), &BTreeSet::new()), None);
        let difference = view(b"abx").differs_from(&view(b"abc"), &BTreeSet::new()).unwrap();
        assert!(difference.contains("byte 2"), "{difference}");
        assert_eq!(view(b"abx").differs_from(&view(b"abc"), &varying), None);
    }
}
