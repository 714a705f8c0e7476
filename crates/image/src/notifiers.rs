//! What the program shares with processes that wait in its place at message queues (mq_notify). Part of the session.

use crate::kernel::NOTIFICATIONS;
use core::sync::atomic::{AtomicU32, AtomicU64};

#[repr(C)]
pub struct Notifiers {
    /// Not 0: a signal is to be sent, by whoever puts 0 in its place.
    pub words: [AtomicU32; NOTIFICATIONS],
    /// Engine: behind which commit mq_notify is called, where nobody was registered, or was called last; and by which process.
    pub commit: AtomicU64,
    pub registrar: AtomicU64,
}
