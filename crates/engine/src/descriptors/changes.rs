//! Which descriptors changed since the last commit, so that the next one describes them.

use super::Descriptors;
use crate::dispatch::Call;
use crate::sys::nr;
use crate::unnamed::Origin;

/// Descriptors whose change is remembered one by one; more than that and all are looked at.
pub const TOUCHED: usize = 128;

const F_SETFL: u64 = 4;
/// FIONBIO, FIONCLEX, FIOCLEX, FIOASYNC.
const MARKING: [u64; 4] = [0x5421, 0x5450, 0x5451, 0x5452];

impl Descriptors {
    pub(super) fn touch(&mut self, fd: i32) {
        if self.touched[..self.touched_count].contains(&fd) {
            return;
        }
        self.were_many_touched |= self.touched_count == TOUCHED;
        if self.touched_count < TOUCHED {
            self.touched[self.touched_count] = fd;
            self.touched_count += 1;
        }
    }

    /// What a commit says of a descriptor has changed.
    pub fn changed(&mut self, fd: i32) {
        if self.is_open(fd) {
            self.dirty = true;
            self.touch(fd);
        }
    }

    /// Its flags change.
    pub fn marked(&mut self, fd: i32) {
        self.fresh.forget(fd);
        self.changed(fd);
    }

    /// The same for all descriptors of the file that is open as `fd`, and of its other end: the size of a pipe is that of both.
    pub fn file_marked(&mut self, fd: i32) {
        self.marked(fd);
        let Origin { file, peer, .. } = self.origins.of(fd);
        for other in (0..self.end()).filter(|_| file != 0) {
            let its = self.origins.of(other).file;
            if its == file || its == peer && peer != 0 {
                self.marked(other);
            }
        }
    }

    /// A descriptor that changed since the last commit; each once, until there is none.
    pub fn next_touched(&mut self) -> Option<i32> {
        self.touched_count = self.touched_count.checked_sub(1)?;
        Some(self.touched[self.touched_count])
    }

    /// Have more changed since the last commit than are remembered? Any of them may be one then. Asked once.
    pub fn take_many_touched(&mut self) -> bool {
        let were_many = core::mem::take(&mut self.were_many_touched);
        if were_many {
            self.touched_count = 0;
        }
        were_many
    }

    /// The call is about to be issued, and may change what files or descriptors are marked with.
    #[inline]
    pub fn note_marks(&mut self, call: &Call) {
        match call.nr {
            nr::FCNTL if call.args[1] == F_SETFL => {
                self.forget_kinds();
                self.file_marked(call.fd());
            }
            nr::IOCTL if MARKING.contains(&call.args[1]) => self.file_marked(call.fd()),
            _ => {}
        }
    }

    /// A commit has described all. Who has been fresh for long is to be described anew.
    pub fn grow_up(&mut self) {
        while let Some(fd) = self.fresh.grow_up() {
            self.touch(fd);
        }
    }
}
