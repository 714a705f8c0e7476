//! What outlast itself has to say. Where nobody can hear it, on a full disk or a broken pipe, that is no reason to end.

use std::fmt::Arguments;
use std::io::Write;

/// A line on standard error.
pub fn say(what: Arguments<'_>) {
    let line = format!("outlast: {}\n", printable(&what.to_string()));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Text that may come from others, as one line that leaves a terminal as it is: control characters are written as in Rust.
pub fn printable(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.into() };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn what_others_have_named_does_nothing_to_a_terminal() {
        assert_eq!(printable("a\x1b[2J\nü\u{9b}"), r"a\u{1b}[2J\nü\u{9b}");
    }
}
