//! Whether a register that was changed is used before it is written anew.

use crate::memory_map::is_engine;
use crate::ptrace::{read, registers};
use crate::tracee::Tracee;
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use libc::pid_t;
use std::time::Instant;

/// Instructions after which nothing is known.
const STEPS: usize = 100;

/// Steps a stopped thread until an instruction uses one of these registers (true), or all were overwritten (false). None: it is not
/// known; a system call, the engine or a signal came first.
pub fn is_used(tracee: &mut Tracee, tid: pid_t, changed: &[&str], deadline: Instant) -> Option<bool> {
    let mut left: Vec<Register> = changed.iter().filter_map(|name| named(name)).collect();
    if left.len() < changed.len() {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    for _ in 0..STEPS {
        let rip = registers(tid).ok()?.rip;
        let mut code = [0; 15];
        if is_engine(rip) || read(tracee.pid, rip, &mut code).is_err() {
            return None;
        }
        let instruction = Decoder::with_ip(64, &code, rip, DecoderOptions::NONE).decode();
        if matches!(instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::INVALID) {
            return None;
        }
        let info = factory.info(&instruction);
        for used in info.used_registers() {
            let whole = used.register().full_register();
            if !left.contains(&whole) {
                continue;
            }
            match used.access() {
                // Writes of 32 bits clear the rest, shorter ones keep it.
                OpAccess::Write if used.register().size() >= 4 => left.retain(|register| *register != whole),
                OpAccess::Write | OpAccess::CondWrite | OpAccess::NoMemAccess | OpAccess::None => (),
                OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                    return Some(true);
                }
            }
        }
        if left.is_empty() {
            return Some(false);
        }
        if tracee.step(tid, deadline).ok()? != 0 {
            return None;
        }
    }
    None
}

fn named(name: &str) -> Option<Register> {
    Register::values().find(|register| register.is_gpr64() && format!("{register:?}").eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_general_register_has_its_name() {
        assert!(crate::registers::GENERAL.iter().all(|name| named(name).is_some()));
        assert_eq!(named("rip"), None);
    }
}
