//! Why a case did not pass.

use std::io;
use std::path::Path;

use crate::difference::Difference;

/// Why a case did not pass; its text is what the person who runs the suite reads.
#[derive(Debug, thiserror::Error, displaydoc::Display)]
pub enum Failure {
    /// {what}: {source}
    System { what: String, source: io::Error },
    /// the outside view differs from the unharmed run: {0}
    Differs(Difference),
    /// a degradation this case does not declare: {0}
    Degradation(String),
    /// {0}
    Told(String),
}

/// Result of a step of a case.
pub type Outcome<T> = Result<T, Failure>;

impl From<Difference> for Failure {
    fn from(difference: Difference) -> Self {
        Failure::Differs(difference)
    }
}

/// Names what was tried when a system call failed.
pub trait Tried<T> {
    /// `what` reads as the start of a sentence: "open the session".
    fn tried(self, what: impl Into<String>) -> Outcome<T>;
    /// As [`Tried::tried`], with the file it was tried on.
    fn tried_on(self, what: &str, path: &Path) -> Outcome<T>;
}

impl<T, E: Into<io::Error>> Tried<T> for Result<T, E> {
    fn tried(self, what: impl Into<String>) -> Outcome<T> {
        self.map_err(|source| Failure::System { what: what.into(), source: source.into() })
    }

    fn tried_on(self, what: &str, path: &Path) -> Outcome<T> {
        self.tried(format!("{what} {}", path.display()))
    }
}
