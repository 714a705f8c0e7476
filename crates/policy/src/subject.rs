//! What policies are matched with.

use std::path::Path;

/// A program that begins, or runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The file without links; of a script the script.
    pub executable: &'a Path,
    /// Effective user.
    pub uid: u32,
    /// Path of the control group, from the root of the hierarchy: `/system.slice/redis.service`.
    pub cgroup: &'a str,
}

/// The innermost service or scope of systemd that a control group belongs to.
pub fn unit_of(cgroup: &str) -> Option<&str> {
    cgroup.rsplit('/').find(|part| part.ends_with(".service") || part.ends_with(".scope"))
}

#[cfg(test)]
mod tests {
    use super::unit_of;

    #[test]
    fn the_innermost_unit_counts() {
        assert_eq!(unit_of("/system.slice/redis.service"), Some("redis.service"));
        assert_eq!(unit_of("/user.slice/user@0.service/app.slice/a.service/inner"), Some("a.service"));
        assert_eq!(unit_of("/user.slice/session-3.scope"), Some("session-3.scope"));
        assert_eq!(unit_of("/"), None);
    }
}
