//! What a request target names.

use percent_encoding::{percent_decode_str, percent_encode, AsciiSet, NON_ALPHANUMERIC};

/// What stays as it is in a path.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Without slashes at either end, nor `.` and `..`; empty: the root.
    pub bytes: Vec<u8>,
    /// It is named as a folder.
    pub folder: bool,
}

/// None: it names nothing that could be here.
pub fn resolve(target: &str) -> Option<Path> {
    let path = match target.split_once("://") {
        // As proxies are asked; which host it is does not matter.
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => &rest[rest.find('/').unwrap_or(rest.len())..],
        _ if target.starts_with('/') => target,
        _ => return None,
    };
    let path = path.split(['?', '#']).next()?;
    let digits =
        |at: usize| path.as_bytes().get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    if path.bytes().enumerate().any(|(at, byte)| byte == b'%' && !digits(at)) {
        return None;
    }
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    let mut parts: Vec<&[u8]> = Vec::new();
    let mut folder = true;
    for part in decoded.split(|byte| *byte == b'/') {
        folder = matches!(part, b"" | b"." | b"..");
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()?),
            part if part.contains(&0) => return None,
            part => parts.push(part),
        }
    }
    Some(Path { bytes: parts.join(&b'/'), folder })
}

impl Path {
    /// As a folder, for those who named it without its slash.
    pub fn location(&self) -> String {
        format!("/{}/", percent_encode(&self.bytes, KEPT))
    }

    /// The media type by the name's extension; what is text is taken to be UTF-8.
    pub fn kind(&self) -> String {
        let name = String::from_utf8_lossy(&self.bytes);
        let kind = mime_guess::from_path(&*name).first_or_octet_stream();
        match kind.type_() == mime_guess::mime::TEXT {
            true => format!("{kind}; charset=utf-8"),
            false => kind.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn a_target_is_a_path_below_the_root_or_nothing() {
        for (target, expected) in [
            ("/", Some(("", true))),
            ("/a/b.html?c=d", Some(("a/b.html", false))),
            ("/a//./b/", Some(("a/b", true))),
            ("/a/../b", Some(("b", false))),
            ("/a/b/..", Some(("a", true))),
            ("/%61%2Fb", Some(("a/b", false))),
            ("/%2e%2e/b", None),
            ("/../b", None),
            ("/a%00", None),
            ("/a%zz", None),
            ("/a%4", None),
            ("http://here/a", Some(("a", false))),
            ("http://here", Some(("", true))),
            ("*", None),
            ("here:80", None),
            ("", None),
        ] {
            let found = resolve(target);
            let found = found.as_ref().map(|path| (std::str::from_utf8(&path.bytes).expect("text"), path.folder));
            assert_eq!(found, expected, "{target}");
        }
    }

    #[test]
    fn a_folder_is_named_so_that_it_is_found_again_and_nothing_else() {
        let path = resolve("/a%20b%0D%0Ac//evil").expect("a path");
        assert_eq!(path.location(), "/a%20b%0D%0Ac/evil/");
        assert_eq!(resolve(&path.location()).map(|again| again.bytes), Some(path.bytes));
        assert_eq!(resolve("//evil").map(|path| path.location()), Some("/evil/".into()));
    }

    #[test]
    fn media_types_go_by_the_extension() {
        for (target, kind) in [
            ("/a.html", "text/html; charset=utf-8"),
            ("/a.PNG", "image/png"),
            ("/a.json", "application/json"),
            ("/a", "application/octet-stream"),
        ] {
            assert_eq!(resolve(target).expect("a path").kind(), kind);
        }
    }
}
