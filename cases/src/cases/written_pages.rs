//! Memory written in every way there is, by the program and by the kernel.

use crate::case::{Case, Program};
use crate::drive::{Drive, Input};
use crate::launch::program;

// process_vm_writev to itself needs a process id that the kernel knows, too.
pub const CASES: &[Case] = &[Case::new(
    "written_pages",
    |_| Ok(Program::new(&[&program("written_pages"), "40"])),
    |_| Drive::Pipes(Input::none()),
)
.root_only()];
