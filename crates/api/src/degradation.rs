//! What is not preserved, by the words that `outlast ps` and the README have for it.

/// In the order of their bits, which never change.
const NAMES: &[&str] = &[
    "threads",
    "children",
    "shared-mapping",
    "no-io-uring",
    "pid-changed",
    "store-full",
    "vector-state",
    "unknown-call",
    "privileged-program",
    "unreadable-program",
    "trace-forbidden",
    "no-tracker",
    "descriptor-lost",
    "mapping-lost",
    "address-taken",
    "kernel-object",
    "foreign-abi",
    "engine-error",
    "signal-lost",
    "older-state",
    "descriptor-limit",
    "file-kept",
    "input-lost",
    "gs-used",
    "proc-hidden",
    "control-group",
    "memory-lock",
    "call-filter",
    "own-faults",
    "reply-differs",
    "output-differs",
];

/// What of the program is not preserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Degradations(pub u64);

impl Degradations {
    /// Is everything preserved?
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their names. One that a newer outlast knows and this crate does not has none.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().enumerate().filter(move |(bit, _)| self.0 >> bit & 1 != 0).map(|(_, name)| *name)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use outlast_image::degradation::Degradation;
    use std::string::String;
    use std::vec::Vec;

    #[test]
    fn all_have_the_names_that_outlast_has_for_them() {
        for (bit, name) in NAMES.iter().enumerate() {
            assert_eq!(Degradation::ALL[bit].key(), *name);
        }
        assert_eq!(Degradations(!0).names().count(), Degradation::ALL.len());
    }

    #[test]
    fn the_header_has_the_same_names() {
        let header = include_str!("../outlast.h");
        let (_, names) = header.split_once("names[] = {").expect("the table");
        let (names, _) = names.split_once('}').expect("its end");
        let names: Vec<String> = names.split(',').map(|name| name.trim().replace('"', "")).collect();
        assert_eq!(names[..names.len() - 1], *NAMES);
    }
}
