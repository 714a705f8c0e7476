//! What a test that failed or hung tells: how far it got, who is still alive, what `outlast` logged.
//!
//! Every test runs in a process of its own, so one board for the process is enough.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;

use crate::tree;

static BOARD: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// What else to find out when a test hangs.
pub type Inquiry = Box<dyn Fn() -> String + Send>;

static INQUIRY: Mutex<Option<Inquiry>> = Mutex::new(None);

/// Forgets the notes of an earlier run; `inquiry` is made should this one hang.
pub fn begin(inquiry: Inquiry) {
    BOARD.lock().expect("nobody panics while holding the board").clear();
    *INQUIRY.lock().expect("nobody panics while holding the inquiry") = Some(inquiry);
}

/// [`text`], and the answer to the inquiry.
pub fn text_of_hang() -> String {
    let mut text = text();
    if let Some(inquiry) = INQUIRY.lock().expect("nobody panics while holding the inquiry").as_ref() {
        text.push_str(&inquiry());
    }
    text
}

/// Replaces what is known about `what`.
pub fn note(what: &str, state: impl Into<String>) {
    BOARD.lock().expect("nobody panics while holding the board").insert(what.to_string(), state.into());
}

/// Everything noted and every living descendant, one a line.
pub fn text() -> String {
    let mut text = String::new();
    for (what, state) in BOARD.lock().expect("nobody panics while holding the board").iter() {
        text.push_str(&format!("  {what}: {state}\n"));
    }
    for process in tree::descendants() {
        text.push_str(&format!(
            "  process {} ({}) state {} parent {}{}\n",
            process.pid,
            process.comm,
            process.state,
            process.parent,
            waiting_in(process.pid)
        ));
    }
    text
}

/// The system call a process is in, with its arguments, as far as we may know.
fn waiting_in(pid: i32) -> String {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    let place = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    format!(" in {place} syscall {}", call.trim())
}
