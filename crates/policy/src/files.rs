//! Policy files in folders: each counts as a whole or not at all, and one that is refused leaves what it said before.

use crate::entry::{Check, Policy, Verdict};
use crate::parse::parse;
use crate::refusal::Refusal;
use crate::subject::Subject;
use rustix::fs::{fstat, open, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// A policy file is not longer than this.
const LONGEST: u64 = 1 << 20;
/// As many files may a user have.
const MOST_OF_USER: usize = 16;

/// A folder of policy files, `*.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    pub path: PathBuf,
    /// Whose programs its files may be about; none: everybody's. Only this user, or root, may have written them.
    pub user: Option<u32>,
}

/// What the files of a folder say.
#[derive(Clone, Debug, Default)]
pub struct Content(BTreeMap<PathBuf, Vec<Policy>>);

/// All that counts, in the order in which it is looked at.
#[derive(Clone, Debug, Default)]
pub struct Policies(Vec<(Folder, Content)>);

impl Content {
    /// Reads the files of a folder, and says what is wrong with some. A file that is refused leaves what it said before, one that is gone
    /// leaves nothing. A folder that is not there has no files.
    pub fn read(folder: &Folder, before: &Self, check: &Check) -> (Self, Vec<Refusal>) {
        let of_user = folder.user.is_some();
        let paths = match toml_files(&folder.path) {
            Ok(paths) => paths,
            // Accounts of services have homes that are not theirs.
            Err(e) if of_user && e.kind() == ErrorKind::PermissionDenied => Vec::new(),
            Err(e) => {
                let refusal = Refusal { file: folder.path.clone(), line: 0, reason: e.to_string() };
                return (before.clone(), vec![refusal]);
            }
        };
        let mut refusals = Vec::new();
        let most = if of_user { MOST_OF_USER } else { usize::MAX };
        if paths.len() > most {
            let reason = format!("a user has at most {MOST_OF_USER} files; the others do not count");
            refusals.push(Refusal { file: folder.path.clone(), line: 0, reason });
        }
        let mut files = BTreeMap::new();
        for path in paths.into_iter().take(most) {
            let policies = read(&path, folder.user).and_then(|text| parse(&path, &text, of_user, check));
            let policies = policies.map_or_else(
                |refusal| {
                    refusals.push(refusal);
                    before.0.get(&path).cloned()
                },
                Some,
            );
            files.extend(policies.map(|policies| (path, policies)));
        }
        (Self(files), refusals)
    }

    /// The same, after another look at which files there are that it is about.
    pub fn refreshed(mut self) -> Self {
        self.0.values_mut().flatten().for_each(Policy::refresh);
        self
    }
}

impl Policies {
    /// The administrator's.
    pub fn of_administrator(&self) -> impl Iterator<Item = &Policy> {
        let contents = self.0.iter().filter(|(folder, _)| folder.user.is_none()).map(|(_, content)| content);
        contents.flat_map(|content| content.0.values().flatten())
    }

    /// Of these folders, the ones that count first.
    pub fn new(folders: Vec<(Folder, Content)>) -> Self {
        Self(folders)
    }

    /// Reads all files again; what is wrong with some.
    pub fn load(&mut self, folders: &[Folder], check: &Check) -> Vec<Refusal> {
        let (mut all, mut refusals) = (Vec::new(), Vec::new());
        for folder in folders {
            let before = self.of(folder).cloned().unwrap_or_default();
            let (content, refused) = Content::read(folder, &before, check);
            refusals.extend(refused);
            all.push((folder.clone(), content));
        }
        self.0 = all;
        refusals
    }

    /// What this folder's files said when they were read last.
    pub fn of(&self, folder: &Folder) -> Option<&Content> {
        self.0.iter().find(|(known, _)| known == folder).map(|(_, content)| content)
    }

    /// The first that fits.
    pub fn find(&self, subject: &Subject) -> Option<&Policy> {
        self.about(Some(subject.uid)).find(|policy| policy.fits(subject))
    }

    /// Could any of them protect a program made from this file, of anybody?
    pub fn may_protect(&self, executable: &Path) -> bool {
        self.about(None).any(|policy| policy.verdict != Verdict::Leave && policy.may_fit(executable))
    }

    /// Could any of them protect one that this user begins in this control group? Who begins it need not be the user that it has then.
    pub fn may_protect_for(&self, subject: &Subject) -> bool {
        let may = |policy: &Policy| policy.may_fit(subject.executable) && policy.is_of(subject.cgroup);
        self.about(Some(subject.uid)).any(|policy| policy.verdict != Verdict::Leave && may(policy))
    }

    /// Does a file count here, if there is one of this name?
    pub fn have(&self, file: &Path) -> bool {
        self.0.iter().any(|(folder, _)| file.parent() == Some(&*folder.path))
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Policy> {
        self.about(None)
    }

    /// Those that may be about this user's programs; none: about anybody's.
    fn about(&self, user: Option<u32>) -> impl Iterator<Item = &Policy> {
        let may = move |folder: &Folder| user.is_none() || folder.user.is_none() || folder.user == user;
        let contents = self.0.iter().filter(move |(folder, _)| may(folder)).map(|(_, content)| content);
        contents.flat_map(|content| content.0.values().flatten())
    }

    /// Where the programs lie that are to be protected; none: anywhere.
    pub fn folders(&self) -> Option<BTreeSet<PathBuf>> {
        let protecting = self.all().filter(|policy| policy.verdict != Verdict::Leave);
        protecting.map(Policy::folders).try_fold(BTreeSet::new(), |mut all, folders| {
            all.extend(folders?);
            Some(all)
        })
    }
}

/// The files of a folder, in the order of their names.
fn toml_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(e) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&e.kind()) => return Ok(Vec::new()),
        other => other?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    let mut files: Vec<_> = paths.into_iter().filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    Ok(files)
}

/// Reads a file that nobody but `user` (or root, or we) could have written.
fn read(path: &Path, user: Option<u32>) -> Result<String, Refusal> {
    let refuse = |reason: String| Refusal { file: path.into(), line: 0, reason };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = open(path, flags, Mode::empty()).map_err(|e| match e {
        Errno::LOOP => refuse("it is a link; put the file itself here".into()),
        e => refuse(e.to_string()),
    })?;
    let stat = fstat(&fd).map_err(|e| refuse(e.to_string()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(refuse("it is no file".into()));
    }
    let own = rustix::process::geteuid().as_raw();
    if ![0, own].contains(&stat.st_uid) && user != Some(stat.st_uid) {
        return Err(refuse("it belongs to another user".into()));
    }
    if stat.st_mode & 0o022 != 0 {
        return Err(refuse("others may write to it; chmod go-w".into()));
    }
    let mut text = String::new();
    let read = File::from(fd).take(LONGEST + 1).read_to_string(&mut text);
    match read {
        Ok(_) if text.len() as u64 > LONGEST => Err(refuse("it is longer than 1 MiB".into())),
        Ok(_) => Ok(text),
        Err(e) => Err(refuse(e.to_string())),
    }
}
