//! Reads policies, in a thread of its own: files may lie where reading takes long, or for ever.

use crate::marks::Marks;
use crate::on_behalf::Readers;
use crate::tell;
use crate::watching::Watching;
use outlast_policy::{Check, Content, Folder, Policies, Refusal};
use outlast_supervisor::say::say;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::Duration;

/// Which folders count, the ones that count first first; asked each time.
pub type Folders = dyn Fn() -> Vec<Folder> + Send;

/// How often users' policies are read again, and what policies are about is looked for anew: files that were installed since.
const REFRESH: Duration = Duration::from_secs(10);

pub struct Reader {
    folders: Box<Folders>,
    check: &'static Check,
    watching: Arc<Watching>,
    marks: Marks,
    policies: Policies,
    on_behalf: Readers,
    /// What programs that run already were told to follow last.
    followed: Vec<String>,
    /// What was said about users' files already, and about places that cannot be watched.
    said: (Vec<Refusal>, BTreeSet<PathBuf>),
}

impl Reader {
    pub fn new(folders: Box<Folders>, check: &'static Check, watching: Arc<Watching>) -> Self {
        let (marks, policies, on_behalf, followed, said) = Default::default();
        Self { folders, check, watching, marks, policies, on_behalf, followed, said }
    }

    /// Reads all policies when it is asked to, and says so there.
    pub fn read(mut self, asked: &Receiver<()>, done: &Sender<()>) {
        loop {
            match asked.recv_timeout(REFRESH) {
                Ok(()) => {
                    self.load(true);
                    say(format_args!("daemon: {} policies", self.policies.all().count()));
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => self.load(false),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// The administrator's files are read only when that is asked for, so that they may be worked on.
    fn load(&mut self, is_asked: bool) {
        let (mut of_users, mut folders) = (Vec::new(), Vec::new());
        for folder in (self.folders)() {
            let before = self.policies.of(&folder).cloned().unwrap_or_default();
            let (content, refusals) = match folder.user {
                Some(user) => self.on_behalf.read(user, &folder, before, self.check),
                None if is_asked => Content::read(&folder, &before, self.check),
                None => (before.refreshed(), Vec::new()),
            };
            match folder.user {
                Some(_) => of_users.extend(refusals),
                None => refusals.iter().for_each(tell),
            }
            folders.push((folder, content));
        }
        of_users.iter().filter(|refusal| is_asked || !self.said.0.contains(refusal)).for_each(tell);
        self.said.0 = of_users;
        self.policies = Policies::new(folders);
        self.watching.follow(self.policies.clone());
        let what = self.policies.all().map(|policy| format!("{policy:?}")).collect();
        let is_new = std::mem::replace(&mut self.followed, what) != self.followed;
        if is_asked || is_new {
            self.watching.have_programs_follow();
        }
        let failed = self.marks.follow(&self.watching.execs, &self.policies);
        for (path, e) in failed.iter().filter(|(path, _)| !self.said.1.contains(path)) {
            say(format_args!("{}: {e}", path.display()));
        }
        self.said.1 = failed.into_iter().map(|(path, _)| path).collect();
    }
}

fn tell(refusal: &Refusal) {
    let place = format!("{}:{}", refusal.file.display(), refusal.line);
    let fields = vec![("OUTLAST_POLICY", place), ("OUTLAST_CAUSE", refusal.reason.clone())];
    tell::tell(&tell::REFUSED, fields, format_args!("{refusal}; what it said before still counts"));
}
