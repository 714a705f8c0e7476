//! Dirty tracking: which pages the program (or the kernel for it) wrote since they were last armed.

mod write_protect_async;

pub use write_protect_async::WriteProtectAsync;

/// What a tracker can do. Addresses are page-aligned; a page is *armed* when its next write will be reported.
pub trait Track {
    /// Begins in a fresh process; `fds` are two descriptor numbers it may use.
    fn attach(&mut self, fds: [i32; 2]) -> Result<(), i64>;
    /// Covers a region that can be written.
    fn cover(&mut self, start: u64, end: u64);
    /// Cheap: false only if no page can have been written for the first time since the last `collect`.
    fn may_have_changed(&mut self) -> bool;
    /// Reports present pages written since they were armed, as ranges in ascending order.
    fn collect(&mut self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64));
    /// Among `start..end`, reports the pages whose content is the process's own: neither untouched file pages nor
    /// the zero page.
    fn private(&mut self, start: u64, end: u64, f: &mut dyn FnMut(u64, u64));
    /// Arms pages.
    fn arm(&mut self, start: u64, end: u64);
}

/// The tracker of this process.
pub type Tracker = WriteProtectAsync;
