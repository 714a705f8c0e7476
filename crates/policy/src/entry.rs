//! One entry of a policy file.

use crate::subject::{unit_of, Subject};
use glob::{MatchOptions, Pattern};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Which programs, and what about them. All of the conditions that are there must hold.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Where it stands.
    pub file: PathBuf,
    pub line: usize,
    pub(crate) executable: Option<Executable>,
    pub(crate) user: Option<User>,
    pub(crate) cgroup: Option<Pattern>,
    pub(crate) unit: Option<Pattern>,
    pub verdict: Verdict,
}

/// What becomes of a program that fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Protect(Vec<Setting>),
    Leave,
}

/// An option of `outlast run`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Without the dashes.
    pub name: String,
    /// None: one without a value.
    pub value: Option<String>,
    #[serde(skip)]
    pub line: usize,
}

/// What is wrong with settings that are to be used together: which of them, and why.
pub type Check = dyn Fn(&[Setting]) -> Result<(), (usize, String)> + Sync;

impl Setting {
    /// As it stands on a command line.
    pub fn argument(&self) -> String {
        // With an equals sign, since a value may be optional.
        let value = self.value.as_ref().map(|value| format!("={value}")).unwrap_or_default();
        format!("--{}{value}", self.name)
    }
}

/// A user, by name or number.
#[derive(Clone, Debug)]
pub(crate) struct User {
    text: String,
    /// As it was looked up last: not while a program waits, for that may take long, and ask programs that wait themselves.
    uid: Option<u32>,
}

impl User {
    pub fn new(text: String) -> Self {
        let mut user = Self { text, uid: None };
        user.refresh();
        user
    }

    fn refresh(&mut self) {
        let named = || nix::unistd::User::from_name(&self.text).ok().flatten().map(|user| user.uid.as_raw());
        self.uid = self.text.parse().ok().or_else(named);
    }
}

/// So many files count that a pattern of a user's fits.
const MOST_FILES_OF_USER: usize = 256;

/// A file, or several.
#[derive(Clone, Debug)]
pub(crate) struct Executable {
    pattern: Pattern,
    of_user: bool,
    /// Files that fitted when this was looked at last, without links: who names a link means what it leads to.
    files: BTreeSet<PathBuf>,
}

/// `*` does not cross folders, as in a shell; a leading dot is nothing special.
const AS_PATHS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: false };

impl Policy {
    /// Does it say something about this program?
    pub fn fits(&self, subject: &Subject) -> bool {
        self.may_fit(subject.executable)
            && self.user.as_ref().is_none_or(|user| user.uid == Some(subject.uid))
            && self.is_of(subject.cgroup)
    }

    /// Could it say something about a program made from this file?
    pub fn may_fit(&self, executable: &Path) -> bool {
        self.executable.as_ref().is_none_or(|wanted| wanted.is(executable))
    }

    /// Could it say something about a program in this control group?
    pub fn is_of(&self, cgroup: &str) -> bool {
        let is = |pattern: &Pattern, text| pattern.matches_with(text, AS_PATHS);
        self.cgroup.as_ref().is_none_or(|pattern| is(pattern, cgroup))
            && self.unit.as_ref().is_none_or(|pattern| unit_of(cgroup).is_some_and(|unit| is(pattern, unit)))
    }

    /// The one unit that it is about; none: it is about several, or any.
    pub fn names_unit(&self) -> Option<&str> {
        self.unit
            .as_ref()
            .map(Pattern::as_str)
            .filter(|unit| !unit.contains(['*', '?', '[']) && unit.ends_with(".service"))
    }

    /// The folders in which the files lie that it is about; none: it is about files anywhere.
    pub fn folders(&self) -> Option<BTreeSet<PathBuf>> {
        self.executable.as_ref().map(Executable::folders)
    }

    /// Looks again at which files and users there are.
    pub fn refresh(&mut self) {
        if let Some(executable) = &mut self.executable {
            executable.refresh();
        }
        if let Some(user) = &mut self.user {
            user.refresh();
        }
    }

    /// Where it stands, in words.
    pub fn place(&self) -> String {
        format!("{}:{}", self.file.display(), self.line)
    }

    /// What it is about, in the words of the file.
    pub fn conditions(&self) -> Vec<(&'static str, &str)> {
        let pairs = [
            ("executable", self.executable.as_ref().map(|executable| executable.pattern.as_str())),
            ("user", self.user.as_ref().map(|user| user.text.as_str())),
            ("cgroup", self.cgroup.as_ref().map(Pattern::as_str)),
            ("unit", self.unit.as_ref().map(Pattern::as_str)),
        ];
        pairs.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect()
    }
}

impl Executable {
    /// Of an absolute path that may be a pattern.
    /// Of one user's, who is to take no more than a little of everybody's memory and marks, only so many files count, and those in its own folder.
    pub fn new(pattern: Pattern, of_user: bool) -> Self {
        let mut executable = Self { pattern, of_user, files: BTreeSet::new() };
        executable.refresh();
        executable
    }

    fn is(&self, file: &Path) -> bool {
        self.files.contains(file) || self.pattern.matches_path_with(file, AS_PATHS)
    }

    fn refresh(&mut self) {
        let most = if self.of_user { MOST_FILES_OF_USER } else { usize::MAX };
        self.files = existing(self.pattern.as_str()).filter(|path| path.is_file()).take(most).collect();
    }

    fn folders(&self) -> BTreeSet<PathBuf> {
        let own = self.files.iter().filter(|_| !self.of_user).filter_map(|file| file.parent().map(Path::to_path_buf));
        // Also where there is no such file yet.
        let folder = self.pattern.as_str().rsplit_once('/').map_or("", |(folder, _)| folder);
        own.chain(existing(if folder.is_empty() { "/" } else { folder }).filter(|path| path.is_dir())).collect()
    }
}

/// What fits a pattern, without links.
fn existing(pattern: &str) -> impl Iterator<Item = PathBuf> {
    let paths = glob::glob_with(pattern, AS_PATHS).into_iter().flatten();
    paths.filter_map(|path| path.ok()?.canonicalize().ok())
}
