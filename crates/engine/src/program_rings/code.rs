//! The instructions in a ring's notes where threads make the calls of entries.

use crate::gate;
use crate::rewrite::CodeMemory;
use crate::user;

/// To the gate as from a rewritten call site: `rcx` is where it goes on, behind a `syscall` for whoever makes the call once more.
const TO_GATE: [u8; 22] = [
    0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, // movabs r11, gate
    0x48, 0x8d, 0x0d, 0x05, 0, 0, 0, // lea rcx, [rip + 5]
    0x41, 0xff, 0xe3, // jmp r11
    0x0f, 0x05, // syscall
];

/// With the frame's address in `rbx` and `MAGIC` in `r12`, `io_uring_enter(-1, MAGIC, frame, result)` follows.
const COME_BACK: [u8; 17] = [
    0x49, 0x89, 0xc2, // mov r10, rax
    0x48, 0x89, 0xda, // mov rdx, rbx
    0x4c, 0x89, 0xe6, // mov rsi, r12
    0x48, 0x83, 0xcf, 0xff, // or rdi, -1
    0xb8, 0xaa, 0x01, 0x00, // mov eax, 426
];

const LEN: usize = 2 * TO_GATE.len() + COME_BACK.len() + 1;

/// What lies at the start of the notes.
pub fn bytes() -> [u8; LEN] {
    let mut to_gate = TO_GATE;
    to_gate[2..10].copy_from_slice(&gate::address().to_le_bytes());
    let mut code = [0; LEN];
    code[..22].copy_from_slice(&to_gate);
    // The last byte of the number is 0.
    code[22..39].copy_from_slice(&COME_BACK);
    code[40..].copy_from_slice(&to_gate);
    code
}

/// In a restored process: an engine of another version has its gate elsewhere.
pub fn renew(at: u64) {
    let (mut now, code) = ([0; LEN], bytes());
    if user::read_bytes(at, &mut now) && now != code {
        if let Some(memory) = CodeMemory::open() {
            memory.write(at, &code);
        }
    }
}
