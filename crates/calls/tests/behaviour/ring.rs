//! The ring operations of the table are there in the running kernel.

use crate::arena::Arena;
use crate::raw::{make, must};
use outlast_calls::RingOp;

const IORING_REGISTER_PROBE: u64 = 8;
const IO_URING_OP_SUPPORTED: u8 = 1;

#[test]
fn the_kernel_has_every_ring_operation() {
    let mut arena = Arena::new(0);
    let parameters = arena.scratch(&[0; 120]);
    let Ok(ring) = u64::try_from(make("io_uring_setup", [1, parameters])) else {
        println!("skipped: io_uring is forbidden here");
        return;
    };
    arena.finally(move || must("close", [ring]));
    // A `struct io_uring_probe`: 16 bytes, the first of them the last opcode; then 8 bytes an opcode, flags at 2.
    let probe = arena.input(&[0; 16 + 8 * 128]);
    must("io_uring_register", [ring, IORING_REGISTER_PROBE, probe, 128]);
    let snapshot = arena.snapshot();
    let start = arena.offset(probe);
    let last = snapshot[start];
    if last < RingOp::Pipe as u8 {
        println!("skipped: this kernel is older than the table, its last operation is {last}");
        return;
    }
    for &op in RingOp::ALL {
        let flags = snapshot[start + 16 + 8 * op as usize + 2];
        assert_ne!(flags & IO_URING_OP_SUPPORTED, 0, "{}", op.name());
    }
}
