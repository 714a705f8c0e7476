//! What a person can do about what is not preserved.

use outlast_image::degradation::Degradation;

/// What would help against it, if anything would.
pub fn on(degradation: Degradation) -> Option<&'static str> {
    Some(match degradation {
        Degradation::NoRing => "sysctl kernel.io_uring_disabled=0, or a container profile that permits io_uring_setup",
        Degradation::PidChanged => "run it as root, or with CAP_CHECKPOINT_RESTORE",
        Degradation::StoreFull => "--store DIR on a larger file system, or a larger tmpfs",
        Degradation::PrivilegedProgram => {
            "start it from an account that needs no set-ID bit or file capability, on a copy without"
        }
        Degradation::UnreadableProgram => "make its file readable to you",
        Degradation::TraceForbidden => "sysctl kernel.yama.ptrace_scope=1, or a container profile that permits ptrace",
        Degradation::NoTracker => "Linux 6.7 or later, or a container profile that permits userfaultfd or mprotect",
        Degradation::ForeignAbi => "use a 64-bit build of it",
        Degradation::AddressTaken => "raise the limit on address space (ulimit -v)",
        Degradation::DescriptorLimit => "raise the limit on open files (ulimit -n)",
        Degradation::ControlGroup => "start it in the control group in which it is to be",
        _ => return None,
    })
}
