//! Filters of system calls that were there before outlast.

use super::finding::Finding;
use outlast_supervisor::foreign_filter;

/// What they leave.
pub fn look() -> Vec<Finding> {
    if !foreign_filter::exist() {
        return Vec::new();
    }
    const WHOSE: &str =
        "a filter of system calls (seccomp) that was there before outlast, as of a service manager or a container,";
    const HELP: Option<&str> = Some("have it allow that (SystemCallFilter= of systemd, for example)");
    if let Some(refused) = foreign_filter::obstacle() {
        return vec![Finding::lost(
            "foreign-filter",
            format!("{WHOSE} refuses {refused}; programs run unprotected"),
            HELP,
        )];
    }
    let without: Vec<String> = foreign_filter::done_without().iter().map(ToString::to_string).collect();
    vec![if without.is_empty() {
        Finding::kept("foreign-filter", format!("{WHOSE} allows what is needed"))
    } else {
        Finding::note("foreign-filter", format!("{WHOSE} has it done without {}", without.join("; ")), HELP)
    }]
}
