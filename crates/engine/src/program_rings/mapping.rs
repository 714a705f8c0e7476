//! What the program maps of a ring.

use super::layout::{array, word, OFF_CQ_RING, OFF_SQES, OFF_SQ_RING, SQE_LEN};
use super::setup::MAP_PRIVATE_ANONYMOUS;
use crate::dispatch::Call;
use crate::state::Engine;
use crate::sys::{err, nr};
use crate::user;

const MAP_FIXED_KINDS: u64 = 0x10 | 0x10_0000;
const MAP_PRIVATE: u64 = 2;
const MAP_TYPE: u64 = 15;
const MAP_ANONYMOUS: u64 = 0x20;

/// What an mmap of a ring's descriptor is in its place: memory of the program's. `None`: it is of something else.
pub fn mapping(e: &Engine, call: &Call) -> Option<Result<Call, i64>> {
    let [at, len, prot, flags, fd, offset] = call.args;
    if flags & MAP_ANONYMOUS != 0 {
        return None;
    }
    let head = super::find(e, fd as i32)?.head()?;
    let most = match offset {
        OFF_SQ_RING | OFF_CQ_RING => array(head.completions) + head.entries as u64 * 4,
        OFF_SQES => head.entries as u64 * SQE_LEN,
        _ => return Some(Err(err::EINVAL)),
    };
    if len == 0 || len > most.next_multiple_of(4096) || flags & MAP_TYPE == MAP_PRIVATE {
        return Some(Err(err::EINVAL));
    }
    Some(Ok(Call { nr: nr::MMAP, args: [at, len, prot, MAP_PRIVATE_ANONYMOUS | flags & MAP_FIXED_KINDS, !0, 0] }))
}

/// The program has mapped a part of the ring.
pub fn note_mapping(e: &Engine, call: &Call, at: u64) {
    let Some(notes) = super::find(e, call.args[4] as i32) else { return };
    let Some(mut head) = notes.head() else { return };
    match call.args[5] {
        OFF_SQES => head.sqes_at = at,
        OFF_CQ_RING => head.cq_at = at,
        _ => head.sq_at = at,
    }
    if call.args[5] != OFF_SQES {
        for (offset, value) in [
            (word::SQ_MASK, head.entries - 1),
            (word::SQ_ENTRIES, head.entries),
            (word::CQ_MASK, head.completions - 1),
            (word::CQ_ENTRIES, head.completions),
        ] {
            user::write(at + offset, &value);
        }
    }
    notes.set_head(&head);
}
