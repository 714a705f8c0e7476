//! Names of programs: short plain words, because they are names of folders too.

use std::path::Path;

/// Longest name of a program, in bytes.
pub const NAME_MAX: usize = 64;

/// Whether this is a name a program may have.
pub fn is_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(good) && name != "." && name != ".."
}

/// A name made from the last component of a program's path; room is left for a number behind it.
pub fn name_of(program: &Path) -> String {
    let base = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let good = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = base.chars().map(good).take(NAME_MAX - 8).collect();
    match is_name(&name) {
        true => name,
        false => "program".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_plain_words() {
        for good in ["python3", "a", "x.y_z-1", &"n".repeat(64)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a b", "ä", "a\n", &"n".repeat(65)] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn every_program_gets_a_good_name() {
        for path in ["/usr/bin/python3", "/", "", "./mein prögramm", "..", &"long".repeat(50)] {
            assert!(is_name(&name_of(Path::new(path))), "{path}");
        }
        assert_eq!(name_of(Path::new("/usr/bin/python3.11")), "python3.11");
    }
}
