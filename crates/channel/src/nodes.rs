//! The file that says which other nodes there are.
//!
//! ```toml
//! listen = "0.0.0.0:7607"                       # nobody can connect without it
//! patience = "2s"                               # a node that is silent for so long has vanished
//!
//! [node.beta]
//! key = "wLqYeTcgUMXpPIdZGmtUvqvWdXXYRk8ttqIATHSyPR0="   # what `outlast node key` prints there
//! address = "10.0.0.2:7607"                     # it is connected to; without it, it is only waited for
//! watch = true                                  # processors there that are starved are told of here
//! may = ["schl/switched"]                       # what it may use here, PIN or PIN/OPERATION or PIN/EVENT
//! ```

use crate::key::PublicKey;
use crate::may::May;
use outlast_core::Interface;
use rustix::fs::{fstat, open, FileType, Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// A node that is silent for longer has vanished, unless the file says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(2);
const PATIENCES: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);
/// As many nodes may a file have.
const MOST: usize = 64;
/// So long may the name of one be: with a pin's it is the name of a pin.
const LONGEST_NAME: usize = 32;
const LONGEST_FILE: u64 = 1 << 20;

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    pub listen: Option<SocketAddr>,
    pub patience: Duration,
    pub nodes: Vec<Node>,
}

/// Another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub key: PublicKey,
    pub address: Option<SocketAddr>,
    pub watch: bool,
    pub may: May,
}

/// What is wrong with the file, and where; line 0: with all of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    pub file: PathBuf,
    pub line: usize,
    pub reason: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file.display(), self.reason),
            line => write!(f, "{}:{line}: {}", self.file.display(), self.reason),
        }
    }
}

impl Nodes {
    /// Reads the file; none: there is none. `pins`: those that other nodes can use.
    ///
    /// # Errors
    /// The first thing that is wrong; nothing of the file counts then.
    pub fn read(path: &Path, pins: &[&'static Interface]) -> Result<Option<Self>, Refusal> {
        let refuse = |reason: String| Refusal { file: path.into(), line: 0, reason };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match open(path, flags, Mode::empty()) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            other => other.map_err(|e| refuse(e.to_string()))?,
        };
        let stat = fstat(&file).map_err(|e| refuse(e.to_string()))?;
        let is_own = [0, rustix::process::geteuid().as_raw()].contains(&stat.st_uid);
        let is_plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_plain || !is_own || stat.st_mode & 0o022 != 0 {
            return Err(refuse("others may write to it; only its owner, root, may".into()));
        }
        let mut text = String::new();
        let read = File::from(file).take(LONGEST_FILE).read_to_string(&mut text);
        read.map_err(|e| refuse(e.to_string()))?;
        Self::parse(path, &text, pins).map(Some)
    }

    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(file: &Path, text: &str, pins: &[&'static Interface]) -> Result<Self, Refusal> {
        let place = |at: usize, reason: String| Refusal {
            file: file.into(),
            line: 1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count(),
            reason,
        };
        let table = DeTable::parse(text).map_err(|e| {
            place(e.span().map_or(0, |span| span.start), e.message().lines().collect::<Vec<_>>().join(" "))
        })?;
        let mut nodes = Self { listen: None, patience: PATIENCE, nodes: Vec::new() };
        let mut places = Vec::new();
        for (key, value) in table.get_ref() {
            let name: &str = key.get_ref();
            let at = value.span().start;
            let wrong = |reason| place(at, reason);
            match name {
                "listen" => nodes.listen = Some(address(name, value).map_err(wrong)?),
                "patience" => nodes.patience = patience(value).map_err(wrong)?,
                "node" => {
                    let DeValue::Table(table) = value.get_ref() else {
                        return Err(wrong("write [node.NAME] and its keys below it".into()));
                    };
                    for (name, value) in table {
                        let at = name.span().start;
                        places.push((at, name.get_ref().to_string()));
                        nodes.nodes.push(node(name.get_ref(), at, value, pins, &place)?);
                    }
                }
                _ => {
                    let reason = format!("unknown key {name:?}; a file has listen, patience and [node.NAME]");
                    return Err(place(key.span().start, reason));
                }
            }
        }
        for (at, (place_of, name)) in places.iter().enumerate() {
            let (before, after) = (&nodes.nodes[..at], &nodes.nodes[at]);
            if let Some(other) = before.iter().find(|other| other.key == after.key) {
                return Err(place(*place_of, format!("{name} has the same key as {}", other.name)));
            }
        }
        if nodes.nodes.len() > MOST {
            return Err(place(0, format!("there are at most {MOST} nodes")));
        }
        Ok(nodes)
    }
}

fn node(
    name: &str,
    at: usize,
    value: &Spanned<DeValue<'_>>,
    pins: &[&'static Interface],
    place: &dyn Fn(usize, String) -> Refusal,
) -> Result<Node, Refusal> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
        let reason = format!("{name:?} is no name: at most {LONGEST_NAME} letters, digits, '-', '_' and '.'");
        return Err(place(at, reason));
    }
    let DeValue::Table(table) = value.get_ref() else {
        return Err(place(at, format!("write [node.{name}] and its keys below it")));
    };
    let (mut of, mut key_of) = ((None, false, May::default()), None);
    for (key, value) in table {
        let word: &str = key.get_ref();
        let at = value.span().start;
        let wrong = |reason| place(at, reason);
        match word {
            "key" => key_of = Some(text(word, value).and_then(str::parse).map_err(wrong)?),
            "address" => of.0 = Some(address(word, value).map_err(wrong)?),
            "watch" => match value.get_ref() {
                DeValue::Boolean(watch) => of.1 = *watch,
                _ => return Err(wrong("watch is true or false".into())),
            },
            "may" => {
                let DeValue::Array(words) = value.get_ref() else {
                    return Err(wrong("may is a list: [\"schl/switched\"]".into()));
                };
                for word in words.iter() {
                    let at = word.span().start;
                    let added = text("may", word).and_then(|word| of.2.add(word, pins));
                    added.map_err(|reason| place(at, reason))?;
                }
            }
            _ => {
                let reason = format!("unknown key {word:?}; there are key, address, watch, may");
                return Err(place(key.span().start, reason));
            }
        }
    }
    let (address, watch, may) = of;
    let Some(key) = key_of else { return Err(place(at, format!("{name} has no key"))) };
    if watch && address.is_none() {
        return Err(place(at, format!("{name} is to be watched and has no address")));
    }
    Ok(Node { name: name.into(), key, address, watch, may })
}

fn text<'a>(key: &str, value: &'a Spanned<DeValue<'_>>) -> Result<&'a str, String> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        _ => Err(format!("{key} is text, in quotes")),
    }
}

fn address(key: &str, value: &Spanned<DeValue<'_>>) -> Result<SocketAddr, String> {
    let text = text(key, value)?;
    text.parse().map_err(|_| format!("{key} is an address and a port: \"10.0.0.2:7607\" or \"[fd00::2]:7607\""))
}

fn patience(value: &Spanned<DeValue<'_>>) -> Result<Duration, String> {
    let wrong = || "patience is a time from \"100ms\" to \"60s\"".to_string();
    let patience = humantime::parse_duration(text("patience", value)?).map_err(|_| wrong())?;
    PATIENCES.contains(&patience).then_some(patience).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_interfaces::schl;

    const KEY: &str = "key = \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n";

    fn parse(text: &str) -> Result<Nodes, String> {
        Nodes::parse(Path::new("nodes.toml"), text, &[&schl::INTERFACE]).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_file_is_read_as_a_whole() {
        let text = format!(
            "listen = \"[::]:7607\"\npatience = \"1s\"\n[node.b]\n{KEY}address = \"10.0.0.2:1\"\nwatch = true\nmay = [\"schl/switched\"]\n"
        );
        let nodes = parse(&text).unwrap();
        assert_eq!((nodes.listen, nodes.patience), ("[::]:7607".parse().ok(), Duration::from_secs(1)));
        let [node] = &nodes.nodes[..] else { panic!("{nodes:?}") };
        assert!(node.watch && node.may.has("schl", "switched") && !node.may.has("schl", "watch"));
        assert!(node.may.has_pin("schl") && !node.may.has_pin("node"));
        assert_eq!(parse("").unwrap(), Nodes { listen: None, patience: PATIENCE, nodes: Vec::new() });
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let of = |rest: &str| format!("\n[node.b]\n{KEY}{rest}\n");
        let wrong = [
            ("listens = 1".into(), "nodes.toml:1: unknown key \"listens\""),
            ("\nlisten = \"beta:1\"".into(), "nodes.toml:2: listen is an address"),
            ("patience = \"1ms\"".into(), "nodes.toml:1: patience is a time"),
            ("[node.b]\nwatch = true".into(), "nodes.toml:1: b has no key"),
            ("[node.'b/c']".into(), "nodes.toml:1: \"b/c\" is no name"),
            ("[node.b]\nkey = \"A\"".into(), "nodes.toml:2: a key is what"),
            (of("watch = true"), "nodes.toml:2: b is to be watched and has no address"),
            (of("may = [\"schl\",\n\"proc\"]"), "nodes.toml:5: other nodes can use no pin \"proc\""),
            (of("may = [\"schl/flags\"]"), "nodes.toml:4: schl has no \"flags\"; there are watch"),
            (of("may = \"schl\""), "nodes.toml:4: may is a list"),
            (of("adress = \"1.2.3.4:5\""), "nodes.toml:4: unknown key \"adress\""),
            (of(&format!("[node.c]\n{KEY}")), "nodes.toml:4: c has the same key as b"),
            ("[node".into(), "nodes.toml:1:"),
        ];
        for (text, reason) in wrong {
            let said = parse(&text).expect_err(&text);
            assert!(said.starts_with(reason), "{text}: {said}");
        }
    }

    #[test]
    fn a_file_that_others_may_write_to_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nodes.toml");
        assert_eq!(Nodes::read(&path, &[]), Ok(None));
        std::fs::write(&path, "").unwrap();
        assert!(Nodes::read(&path, &[]).is_ok_and(|nodes| nodes.is_some()));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).unwrap();
        assert!(Nodes::read(&path, &[]).is_err_and(|refusal| refusal.line == 0));
        assert!(Nodes::read(folder.path(), &[]).is_err());
    }
}
