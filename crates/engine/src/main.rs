//! The engine: lives inside the protected process, freestanding, linked at a fixed address.
//!
//! It uses neither the program's heap nor its libc; it allocates nothing but the mappings it makes itself. Everything
//! here may run between any two instructions of the program.
#![no_std]
#![no_main]

mod access;
mod advice;
mod aliased;
mod anchor;
mod attach;
mod call_filters;
mod calls;
mod changed_maps;
mod check;
mod children;
mod commit;
mod control;
mod countdown;
mod delivery;
mod describe;
mod descriptors;
mod dispatch;
mod entry;
mod failure;
mod folding;
mod frame;
mod fresh;
mod futexes;
mod gate;
mod gathered;
mod group;
mod handlers;
mod held;
mod held_files;
mod history;
mod hot;
mod in_hand;
mod inputs;
mod interests;
mod interrupted;
mod joined_regions;
mod kept_files;
mod kernel_writes;
mod lag;
mod leader;
mod line;
mod lock;
mod locked;
mod medium;
mod memory_functions;
mod mutant;
mod native;
mod noted;
mod notifier;
mod numbers;
mod operation;
mod own_descriptors;
mod own_faults;
mod own_files;
mod periodic;
mod perturb;
mod pinned;
mod proc;
mod program_rings;
mod queued;
mod regions;
mod replies;
mod requests;
mod restore;
mod retrace;
mod rewrite;
mod ring;
mod saving;
mod scheduling;
mod scratch;
mod shared_files;
mod shared_memory;
mod shown;
mod signals;
mod sorted;
mod spans;
mod state;
mod store_room;
mod successor;
mod sys;
mod taking_part;
mod text;
mod thread;
mod threads;
mod tracker;
mod undo;
mod unnamed;
mod unreadable;
mod unwritable;
mod user;
mod vector;
mod vm_flags;
mod waiting;
mod ways;
mod world;

/// Goes on in `f` on another stack; what lies on this one is never needed again.
///
/// # Safety
/// `top` is the end of an unused stack.
pub(crate) unsafe fn on_stack(top: u64, f: unsafe extern "C" fn() -> !) -> ! {
    core::arch::asm!("mov rsp, {}", "xor ebp, ebp", "call {}", "ud2", in(reg) top, in(reg) f, options(noreturn));
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    control::engine_error(info.location().map_or(0, |l| l.line()), 0)
}

#[no_mangle]
extern "C" fn rust_eh_personality() {}
