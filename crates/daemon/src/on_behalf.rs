//! Users' policies are read with their own rights, and no longer than a moment.

use outlast_policy::{Check, Content, Folder, Refusal};
use std::collections::BTreeMap;
use std::ptr::null;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long reading the files of one user may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The group that nobody is in.
const NOBODYS: u32 = 65534;

/// Threads that read for users and have not come back, by user.
#[derive(Default)]
pub struct Readers(BTreeMap<u32, JoinHandle<()>>);

impl Readers {
    /// What the user's files say; as before where they cannot be read in time.
    pub fn read(
        &mut self,
        user: u32,
        folder: &Folder,
        before: Content,
        check: &'static Check,
    ) -> (Content, Vec<Refusal>) {
        self.0.retain(|_, thread| !thread.is_finished());
        let late = || vec![Refusal { file: folder.path.clone(), line: 0, reason: "reading it takes too long".into() }];
        if self.0.contains_key(&user) {
            return (before, late());
        }
        let (result, received) = mpsc::channel();
        let (of_thread, old) = (folder.clone(), before.clone());
        let work = move || {
            if become_user(user) {
                let _ = result.send(Content::read(&of_thread, &old, check));
            }
        };
        let Ok(thread) = thread::Builder::new().spawn(work) else { return (before, late()) };
        received.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            self.0.insert(user, thread);
            (before, late())
        })
    }
}

/// From now on this thread opens what the user may open, and no more.
fn become_user(user: u32) -> bool {
    // SAFETY: the system calls themselves, which are about this thread alone; they read no memory.
    unsafe {
        let (gives_up, group) = (libc::syscall(libc::SYS_setgroups, 0, null::<u32>()), libc::setfsgid(NOBODYS));
        // Root's right to pass by all permissions goes with its number.
        libc::setfsuid(user);
        // They tell what was before, and fail silently.
        gives_up == 0 && group >= 0 && libc::setfsuid(user) as u32 == user && libc::setfsgid(NOBODYS) as u32 == NOBODYS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{chown, PermissionsExt};

    #[test]
    fn a_user_learns_nothing_of_files_that_only_root_may_read() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root reads for others");
            return;
        }
        let dir = tempfile::TempDir::new().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for (name, owner) in [("own.toml", 12345), ("roots.toml", 0)] {
            let path = dir.path().join(name);
            fs::write(&path, "[[protect]]\nexecutable = \"/bin/a\"\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            chown(&path, Some(owner), Some(owner)).unwrap();
        }
        let folder = Folder { path: dir.path().into(), user: Some(12345) };
        let (content, refusals) = Readers::default().read(12345, &folder, Content::default(), &|_| Ok(()));
        let [refusal] = &refusals[..] else { panic!("{refusals:?}") };
        assert!(refusal.file.ends_with("roots.toml") && refusal.reason.contains("denied"), "{refusal}");
        assert_eq!(outlast_policy::Policies::new(vec![(folder, content)]).all().count(), 1);
        // This thread has kept its rights.
        assert!(fs::read(dir.path().join("roots.toml")).is_ok());
    }
}
