//! The supervisor's presence in a session: a word that the kernel itself changes when the supervisor dies.
//!
//! A robust futex (get_robust_list(2)) is meant for locks: the kernel walks a list of those that a thread holds when it
//! dies, marks them and wakes who waits. The list hangs together by pointers in the sessions. The program can write there;
//! at worst the kernel then marks nothing.

use crate::session::Session;
use outlast_image::control::supervisor::{DIED, WAITERS};
use outlast_image::control::Control;
use std::mem::offset_of;
use std::sync::atomic::Ordering::Release;
use std::sync::{Arc, Mutex};

/// A session that knows of this process as its supervisor, as long as this is not dropped.
pub struct Presence(Arc<Session>);

impl Presence {
    /// To be called by the thread whose end is the supervisor's.
    pub fn in_session(session: Arc<Session>) -> Self {
        // SAFETY: plain system call.
        let thread = unsafe { libc::gettid() } as u32;
        let control = session.control();
        List::change(|present| present.push(session.clone()));
        // A word that does not name this thread is nothing to the kernel: it counts from here on.
        control.supervisor.store(thread | WAITERS, Release);
        crate::futex::wake(&control.supervisor);
        Self(session)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        List::change(|present| present.retain(|session| !Arc::ptr_eq(session, &self.0)));
        let word = &self.0.control().supervisor;
        word.store(DIED | WAITERS, Release);
        crate::futex::wake(word);
    }
}

/// struct robust_list_head: the first entry, where the word is beside an entry, and an entry that is being changed.
#[repr(C)]
struct Head {
    first: u64,
    word: i64,
    pending: u64,
}

/// The list of the only thread that has one.
struct List {
    head: Box<Head>,
    present: Vec<Arc<Session>>,
}

static LIST: Mutex<Option<List>> = Mutex::new(None);

impl List {
    /// Changes who is present, and links the sessions anew.
    fn change(change: impl FnOnce(&mut Vec<Arc<Session>>)) {
        let mut list = LIST.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let word = offset_of!(Control, supervisor) as i64 - offset_of!(Control, supervisor_entry) as i64;
        let list =
            list.get_or_insert_with(|| Self { head: Box::new(Head { first: 0, word, pending: 0 }), present: vec![] });
        change(&mut list.present);
        let end = std::ptr::from_ref(&*list.head) as u64;
        let mut next = end;
        for session in &list.present {
            let entry = &session.control().supervisor_entry;
            entry.store(next, Release);
            next = entry.as_ptr() as u64;
        }
        list.head.first = next;
        // SAFETY: the head lives in a box that is never dropped, the entries in sessions that the list itself keeps mapped.
        unsafe { libc::syscall(libc::SYS_set_robust_list, &raw mut *list.head, std::mem::size_of::<Head>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Acquire;

    #[test]
    fn the_kernel_tells_every_session_of_a_supervisor_that_was_killed() {
        let sessions = std::array::from_fn::<_, 3, _>(|_| Arc::new(Session::empty()));
        // SAFETY: the child takes no lock that another thread of this test could hold but the allocator's, which glibc
        // makes safe, and ends without unwinding.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let _present = sessions.each_ref().map(|session| Presence::in_session(session.clone()));
            drop(Presence::in_session(Arc::new(Session::empty())));
            // SAFETY: plain system call; the process ends here.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        // SAFETY: plain system call on our own child.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        assert_eq!(sessions.map(|session| session.control().supervisor.load(Acquire)), [DIED | WAITERS; 3]);
    }
}
