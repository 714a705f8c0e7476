//! From a file's text to its entries, or to the first thing that is wrong with it.

use crate::entry::{Check, Executable, Policy, Setting, User, Verdict};
use crate::refusal::Refusal;
use glob::Pattern;
use std::path::Path;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// The conditions that an entry may have.
const CONDITIONS: [&str; 4] = ["executable", "user", "cgroup", "unit"];
/// The options of `outlast run` that an entry may set.
const SETTINGS: [&str; 20] = [
    "modules",
    "commit",
    "every",
    "server",
    "tree",
    "store",
    "durable",
    "retries",
    "hang",
    "generations",
    "encrypt",
    "eager",
    "tracker",
    "no-io-uring",
    "no-rewrite",
    "storm",
    "leaks",
    "alert",
    "journal",
    "sections",
];
/// Those that are lists of words.
const WORDS: [&str; 3] = ["alert", "modules", "sections"];
/// The one that may be on without being mentioned.
const SWITCH: &str = "journal";

/// As many entries may a user's file have: each takes time for every program that begins.
const MOST_OF_USER: usize = 64;
/// So long may a pattern in it be: a class is compared letter by letter.
const LONGEST_PATTERN: usize = 256;
/// As many wildcards may a pattern in it have: comparing takes as many nested loops.
const MOST_WILDCARDS: usize = 2;

/// Reads a policy file; `check` judges the settings of an entry. In a file `of_user`, who is not to hold up others, an entry must name
/// executables, in one folder.
///
/// # Errors
/// The first thing that is wrong; nothing of the file counts then.
pub fn parse(file: &Path, text: &str, of_user: bool, check: &Check) -> Result<Vec<Policy>, Refusal> {
    let place = |at: usize, reason: String| Refusal {
        file: file.into(),
        line: 1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count(),
        reason,
    };
    let table = DeTable::parse(text)
        .map_err(|e| place(e.span().map_or(0, |span| span.start), e.message().lines().collect::<Vec<_>>().join(" ")))?;
    let mut policies = Vec::new();
    for (key, value) in table.get_ref() {
        let name: &str = key.get_ref();
        if !["protect", "leave"].contains(&name) {
            let reason = format!("unknown key {name:?}; a file has [[protect]] and [[leave]]");
            return Err(place(key.span().start, reason));
        }
        let DeValue::Array(entries) = value.get_ref() else {
            return Err(place(value.span().start, format!("write [[{name}]], with two brackets")));
        };
        for entry in entries.iter() {
            let at = entry.span().start;
            let DeValue::Table(table) = entry.get_ref() else {
                return Err(place(at, format!("write [[{name}]] and its keys below it")));
            };
            let reader = Reader { place: &place, protects: name == "protect", of_user };
            let mut policy = reader.entry(file, at, table)?;
            if let Verdict::Protect(settings) = &mut policy.verdict {
                check(settings).map_err(|(which, reason)| {
                    let line = settings.get(which).map_or(policy.line, |setting| setting.line);
                    Refusal { file: file.into(), line, reason }
                })?;
            }
            policies.push(policy);
            if of_user && policies.len() > MOST_OF_USER {
                return Err(place(at, format!("a user's file has at most {MOST_OF_USER} entries")));
            }
        }
    }
    // Of tables of two names the parser does not keep the order.
    policies.sort_by_key(|policy| policy.line);
    Ok(policies)
}

struct Reader<'a> {
    place: &'a dyn Fn(usize, String) -> Refusal,
    protects: bool,
    of_user: bool,
}

impl Reader<'_> {
    fn entry(&self, file: &Path, at: usize, table: &DeTable) -> Result<Policy, Refusal> {
        let line = (self.place)(at, String::new()).line;
        let mut policy = Policy {
            file: file.into(),
            line,
            executable: None,
            user: None,
            cgroup: None,
            unit: None,
            verdict: Verdict::Leave,
        };
        let mut settings = Vec::new();
        for (key, value) in table {
            let name: &str = key.get_ref();
            match name {
                "executable" => policy.executable = Some(self.executable(name, value)?),
                "cgroup" => policy.cgroup = Some(self.path(name, value)?),
                "unit" => policy.unit = Some(self.pattern(name, value)?),
                "user" => policy.user = Some(User::new(self.user(value)?)),
                _ if !SETTINGS.contains(&name) => {
                    let known = CONDITIONS.iter().chain(SETTINGS.iter().filter(|_| self.protects));
                    let known = known.copied().collect::<Vec<_>>().join(", ");
                    return Err(self.refuse(key.span().start, format!("unknown key {name:?}; there are {known}")));
                }
                _ if !self.protects => {
                    let reason = format!("{name} says how to protect, and this is left alone: use [[protect]]");
                    return Err(self.refuse(key.span().start, reason));
                }
                _ => settings.extend(self.setting(name, key.span().start, value)?),
            }
        }
        if policy.conditions().is_empty() {
            let reason = "it says of no program that it is about it: give one of executable, user, cgroup, unit";
            return Err(self.refuse(at, reason.into()));
        }
        if self.of_user && policy.executable.is_none() {
            return Err(self.refuse(at, "a user's policy names an executable".into()));
        }
        settings.sort_by_key(|setting| setting.line);
        if self.protects {
            policy.verdict = Verdict::Protect(settings);
        }
        Ok(policy)
    }

    fn refuse(&self, at: usize, reason: String) -> Refusal {
        (self.place)(at, reason)
    }

    fn text<'v>(&self, name: &str, value: &'v Spanned<DeValue>) -> Result<&'v str, Refusal> {
        match value.get_ref() {
            DeValue::String(text) if text.contains('\0') => {
                Err(self.refuse(value.span().start, format!("{name} contains a NUL byte")))
            }
            DeValue::String(text) if !text.is_empty() => Ok(text),
            _ => Err(self.refuse(value.span().start, format!("{name} is a text in quotes"))),
        }
    }

    fn pattern(&self, name: &str, value: &Spanned<DeValue>) -> Result<Pattern, Refusal> {
        let text = self.text(name, value)?;
        let wildcards = text.matches(['*', '?', '[']).count();
        if self.of_user && (wildcards > MOST_WILDCARDS || text.contains("**")) {
            let reason = format!("in a user's policy {name} has at most {MOST_WILDCARDS} wildcards, and no **");
            return Err(self.refuse(value.span().start, reason));
        }
        if self.of_user && text.len() > LONGEST_PATTERN {
            let reason = format!("in a user's policy {name} is at most {LONGEST_PATTERN} bytes long");
            return Err(self.refuse(value.span().start, reason));
        }
        Pattern::new(text).map_err(|e| self.refuse(value.span().start, format!("{name}: {}", e.msg)))
    }

    fn path(&self, name: &str, value: &Spanned<DeValue>) -> Result<Pattern, Refusal> {
        match self.text(name, value)?.starts_with('/') {
            true => self.pattern(name, value),
            false => Err(self.refuse(value.span().start, format!("{name} begins with a slash"))),
        }
    }

    fn executable(&self, name: &str, value: &Spanned<DeValue>) -> Result<Executable, Refusal> {
        let pattern = self.path(name, value)?;
        let is_wild = |folder: &str| folder.contains(['*', '?', '[']);
        if self.of_user && pattern.as_str().rsplit_once('/').is_some_and(|(folder, _)| is_wild(folder)) {
            let reason = format!("in a user's policy only the last part of {name} has wildcards");
            return Err(self.refuse(value.span().start, reason));
        }
        Ok(Executable::new(pattern, self.of_user))
    }

    fn user(&self, value: &Spanned<DeValue>) -> Result<String, Refusal> {
        match value.get_ref() {
            DeValue::Integer(number) => Ok(number.as_str().into()),
            _ => self.text("user", value).map(String::from),
        }
    }

    /// None: it is switched off, as it is without being mentioned. Several: a word each.
    fn setting(&self, name: &str, at: usize, value: &Spanned<DeValue>) -> Result<Vec<Setting>, Refusal> {
        let line = self.refuse(at, String::new()).line;
        let setting = |value| Setting { name: name.into(), value, line };
        if let (true, DeValue::Array(words)) = (WORDS.contains(&name), value.get_ref()) {
            return words.iter().map(|word| Ok(setting(Some(self.text(name, word)?.into())))).collect();
        }
        let value = match value.get_ref() {
            DeValue::Boolean(true) => None,
            DeValue::Boolean(false) if name == SWITCH => Some("no".into()),
            DeValue::Boolean(false) => return Ok(Vec::new()),
            DeValue::Integer(number) => Some(number.as_str().into()),
            _ => Some(self.text(name, value)?.into()),
        };
        Ok(vec![setting(value)])
    }
}
