#![no_std]
pub mod decode;
mod opcode;
