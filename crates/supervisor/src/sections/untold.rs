//! Functions that were left without telling of it: by longjmp, or as an exception passed. Nothing is ended for one of these, whatever a
//! thread computes elsewhere.

use super::{At, Slot};
use crate::blocks::Block;
use crate::decision::{Hang, Stays};
use crate::probes::Probes;
use crate::stacks;
use libc::pid_t;
use outlast_interfaces::sect::{Inside, Left, Section, UNTOLD};
use outlast_stacks::Frame;

/// The runs of which it is known that they have ended.
#[derive(Default)]
pub struct Untold(Vec<(u32, Inside)>);

impl Untold {
    /// The process has gone back, or is another one: its numbers begin anew.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Has threads left them that are said to be in them, and forgets those of which it is not said any more.
    pub fn leave(&mut self, slots: &mut [Slot]) {
        self.0.retain(|(number, run)| {
            let mut is_said = false;
            for slot in slots.iter_mut().filter(|slot| slot.number == *number) {
                is_said |= slot.is_in(*run);
                slot.inside.retain(|(inside, _)| inside != run);
                slot.left.push(Left { section: run.section, run: run.run, exit: UNTOLD });
            }
            is_said
        });
    }

    /// Whether the thread is not in the function any more.
    pub fn has_left(
        &mut self,
        slots: &[Slot],
        blocks: &[Block],
        probes: Option<&Probes>,
        pid: pid_t,
        hang: &Hang,
    ) -> bool {
        let Stays::Lingers { section, .. } = hang.why else { return false };
        let Some(block) = blocks.iter().find(|block| block.thread == hang.thread) else { return false };
        let of_thread = slots.iter().filter(|slot| slot.number == block.number);
        let entered = of_thread.flat_map(|slot| &slot.inside).find(|(inside, _)| inside.section == section);
        let (run, at) = match entered {
            Some((_, At::Anywhere)) | None => return false,
            Some((run, at)) => (*run, *at),
        };
        // In the engine it is behind its last call.
        let now = stacks::now(hang.thread).unwrap_or(block.at);
        let stack = stacks::from(pid, now);
        let is_in = match at {
            // The stack at its first instruction: while it runs it is no shorter.
            At::Stack(at) if now.sp > at => false,
            At::Stack(at) => is_called(&stack.frames, stacks::word(pid, at), is_probed(probes, section)),
            _ => stack.frames.iter().any(|frame| Some(frame.address) == at.caller()),
        };
        // Who cannot be seen there now may be the next time.
        if !is_in && stack.is_whole {
            self.0.push((block.number, run));
            if let (Section::Symbol(number), Some(probes)) = (section, probes) {
                probes.forget(hang.thread, number);
            }
        }
        !is_in
    }
}

/// Whether it is the function that goes back to this address that is still running, and not only another run of it.
fn is_called(stack: &[Frame], caller: Option<u64>, is_it: impl Fn(&Frame) -> bool) -> bool {
    let goes_back = |n: usize| stack.get(n + 1).is_none_or(|frame| Some(frame.address) == caller);
    // Where a call was rewritten the innermost frame may be that of the function that makes it.
    let may_be_it = |n: usize, frame: &Frame| is_it(frame) || n == 0 && frame.file.is_none();
    stack.iter().enumerate().any(|(n, frame)| may_be_it(n, frame) && goes_back(n))
}

fn is_probed(probes: Option<&Probes>, section: Section) -> impl Fn(&Frame) -> bool + '_ {
    move |frame| {
        let (Section::Symbol(number), Some(probes), Some((file, at))) = (section, probes, &frame.file) else {
            return false;
        };
        probes.is_code_of(number, file, at.wrapping_sub(frame.address - frame.within))
    }
}

impl Slot {
    fn is_in(&self, run: Inside) -> bool {
        self.inside.iter().any(|(inside, _)| *inside == run)
    }
}

impl At {
    fn caller(self) -> Option<u64> {
        match self {
            Self::Called { caller } => Some(caller),
            _ => None,
        }
    }
}
