//! The control page of a protected program, mapped read-only: the cheap way to see its pid and phase.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use outlast_image::control::{state, Control, MAGIC};
use outlast_image::degradation::Degradation;
use outlast_image::event::phase;
use outlast_image::layout::PAGE;
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};

/// A mapped control page. It stays readable after the session file is gone.
pub struct ControlPage {
    page: *const Control,
    inode: u64,
}

// SAFETY: the page is only read, through atomics, and the mapping lives as long as the value.
unsafe impl Send for ControlPage {}
// SAFETY: as above.
unsafe impl Sync for ControlPage {}

impl ControlPage {
    /// Maps the session at `path`; `None` while there is none, or none with a valid control page.
    pub fn open(path: &Path) -> Option<ControlPage> {
        let file = File::open(path).ok()?;
        let meta = file.metadata().ok()?;
        if meta.len() < PAGE {
            return None;
        }
        let page = map_first_page(&file)?;
        let page = ControlPage { page, inode: meta.ino() };
        (page.control().magic.load(Relaxed) == MAGIC).then_some(page)
    }

    /// Whether the file at `path` is still the one that is mapped (a cold resume makes a new one).
    pub fn is_current(&self, path: &Path) -> bool {
        path.metadata().is_ok_and(|meta| meta.ino() == self.inode)
    }

    pub fn control(&self) -> &Control {
        // SAFETY: `page` is a readable mapping of a page that holds nothing but atomics.
        unsafe { &*self.page }
    }

    /// Index into [`phase::NAMES`]; out of range only if the engine wrote nonsense.
    pub fn phase(&self) -> usize {
        self.control().phase.load(Relaxed) as usize
    }

    /// Degradations whose bits are set.
    pub fn degradations(&self) -> Vec<Degradation> {
        let bits = self.control().degradations.load(Relaxed);
        Degradation::ALL.iter().copied().filter(|d| bits & d.bit() != 0).collect()
    }

    /// One line for a diagnosis.
    pub fn summary(&self) -> String {
        let c = self.control();
        let state_name = state::NAMES.get(c.state.load(Relaxed) as usize).unwrap_or(&"?");
        let phase_name = phase::NAMES.get(self.phase()).unwrap_or(&"?");
        format!(
            "state {state_name}, phase {phase_name}, program {}, anchor {}, commits {}, restored {}, rollbacks {}, \
             fault signal {} ({} in a row) at {:#x}, error line {} number {}, degradations {:?}",
            c.program_pid.load(Relaxed),
            c.anchor_pid.load(Relaxed),
            c.commits.load(Relaxed),
            c.restored.load(Relaxed),
            c.rollbacks.load(Relaxed),
            c.fault_signal.load(Relaxed),
            c.fault_repeats.load(Relaxed),
            c.fault_rip.load(Relaxed),
            c.error_line.load(Relaxed),
            c.error_number.load(Relaxed),
            self.degradations(),
        )
    }
}

impl Drop for ControlPage {
    fn drop(&mut self) {
        unmap_page(self.page);
    }
}

fn map_first_page(file: &File) -> Option<*const Control> {
    // SAFETY: a new read-only mapping at an address of the kernel's choice touches no memory of ours.
    let at = unsafe { mmap(ptr::null_mut(), PAGE as usize, ProtFlags::READ, MapFlags::SHARED, file, 0) };
    at.ok().map(|p| p as *const Control)
}

fn unmap_page(page: *const Control) {
    // SAFETY: `page` came from `map_first_page` and is unmapped once, by the owner's drop.
    let _ = unsafe { munmap(page as *mut _, PAGE as usize) };
}
