//! Where policies are, and what their settings mean: options of `outlast run`.

use crate::how::How;
use crate::run::Run;
use clap::Parser;
use outlast_policy::{Folder, Setting};
use std::path::{Path, PathBuf};

/// The administrator's policies.
pub const SYSTEM: &str = "/etc/outlast/policy.d";
/// A user's, in the home folder.
const OF_USER: &str = ".config/outlast/policy.d";

/// The settings of one entry as a command line.
#[derive(Parser)]
#[command(name = "run")]
struct Line {
    #[command(flatten)]
    run: Run,
}

/// What is wrong with settings that are to be used together: which of them, and why.
pub fn check(settings: &[Setting]) -> Result<(), (usize, String)> {
    // One after the other, so that it is known which one is wrong; what an earlier one wants may come later.
    for (at, setting) in settings.iter().enumerate() {
        if let Err(e) = line(std::slice::from_ref(setting)) {
            if e.kind() != clap::error::ErrorKind::MissingRequiredArgument {
                return Err((at, in_words(&e)));
            }
        }
    }
    let whole = line(settings).map_err(|e| (settings.len(), in_words(&e)))?;
    whole.run.contradiction().map_or(Ok(()), |why| Err((settings.len(), why.into())))
}

/// How a program is protected by these options of `outlast run`; or what is wrong with them, in words.
pub fn how(options: &[String]) -> Result<How, String> {
    let words = std::iter::once("run".into()).chain(options.iter().cloned()).chain(["--".into(), "program".into()]);
    Line::try_parse_from(words).map(|line| line.run.how()).map_err(|e| in_words(&e))
}

fn line(settings: &[Setting]) -> Result<Line, clap::Error> {
    let words = settings.iter().map(Setting::argument);
    Line::try_parse_from(std::iter::once("run".into()).chain(words).chain(["--".into(), "program".into()]))
}

fn in_words(e: &clap::Error) -> String {
    let text = e.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").replace(" '--", " '")
}

/// The folders that count, the administrator's first; of users those whom /etc/passwd lists.
pub fn folders() -> Vec<Folder> {
    let system = Folder { path: PathBuf::from(SYSTEM), user: None };
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let own = rustix::process::geteuid();
    let of_users = users.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, uid, _, _, home, ..] = fields[..] else { return None };
        let (uid, path) = (uid.parse().ok()?, Path::new(home).join(OF_USER));
        // Root's own are the administrator's; and nothing is looked up here, for home folders may lie where that takes long.
        let counts = uid != 0 && (own.is_root() || own.as_raw() == uid);
        (counts && Path::new(home).is_absolute()).then_some(Folder { path, user: Some(uid) })
    });
    std::iter::once(system).chain(of_users).collect()
}

/// Would it count as a user's?
pub fn is_of_user(file: &Path) -> bool {
    file.canonicalize().is_ok_and(|file| file.parent().is_some_and(|folder| folder.ends_with(OF_USER)))
}

/// These folders, or those that count if there are none.
pub fn folders_or(paths: Vec<PathBuf>) -> Vec<Folder> {
    match paths.is_empty() {
        true => folders(),
        // Programs are told where their policy stands, wherever they are.
        false => {
            let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
            paths.into_iter().map(|path| Folder { path: absolute(path), user: None }).collect()
        }
    }
}
