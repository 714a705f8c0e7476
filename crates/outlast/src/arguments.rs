//! The command line as it is typed.

use std::ffi::OsString;

/// The command line, with `--durable` told from a program behind it: `--durable ./server` has no value, `--durable 200ms` has one.
pub fn typed() -> Vec<OsString> {
    told_apart(std::env::args_os().collect())
}

fn told_apart(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is_run = arguments.get(1).is_some_and(|word| word == "run");
    let options = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let Some(at) = arguments[..options].iter().position(|word| word == "--durable").filter(|_| is_run) else {
        return arguments;
    };
    let is_value = arguments
        .get(at + 1)
        .and_then(|word| word.to_str())
        .is_some_and(|word| word == "visible" || word.starts_with(|first: char| first.is_ascii_digit()));
    if !is_value {
        arguments[at].push("=visible");
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_not_taken_for_a_duration() {
        let typed = |line: &str| {
            let words = told_apart(line.split(' ').map(OsString::from).collect());
            words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(typed("outlast run --durable ./server"), "outlast run --durable=visible ./server");
        assert_eq!(typed("outlast run --durable --name it -- x"), "outlast run --durable=visible --name it -- x");
        assert_eq!(typed("outlast run --durable -- x"), "outlast run --durable=visible -- x");
        for unchanged in [
            "outlast run --durable 200ms ./server",
            "outlast run --durable visible -- x",
            "outlast run --durable=1s x",
            "outlast run -- x --durable y",
            "outlast ps",
        ] {
            assert_eq!(typed(unchanged), unchanged);
        }
    }
}
