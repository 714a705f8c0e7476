//! Signals of the dead's that the program has not taken, or took after the commit: sent again.

use crate::calls::timers::SIGALRM;
use crate::calls::window;
use crate::control::{control, degrade};
use crate::delivery;
use crate::in_hand;
use crate::mutant::without;
use crate::queued;
use crate::signals;
use crate::state::{journal, Engine};
use core::sync::atomic::Ordering::*;
use outlast_image::degradation::Degradation;
use outlast_image::mutant::Mutant;

const SI_KERNEL: u64 = 0x80;

/// Signals that were delivered after the commit are delivered again.
///
/// `sent`: the signals that the program, which is rolled back in place, has sent to itself and not taken.
pub unsafe fn requeue_signals(e: &mut Engine, sent: u64) {
    if !without(Mutant::PendingSignals) {
        let is_stale = |info: &queued::Info| sent & signals::bit(info[0] as i32) != 0 && delivery::is_own(e, info);
        e.queue.send_again(is_stale, sent != 0);
    }
    window::compare(e);
    let known = crate::state::engine();
    in_hand::recover(e);
    e.store().journal_for_each(&mut |_, kind, bytes| {
        if kind == journal::SIGNAL && bytes.len() == 128 {
            let info: [u64; 16] = bytemuck::pod_read_unaligned(bytes);
            let sig = info[0] as i32;
            // Fatal ones are not repeated: the rollback is the answer to them.
            if (1..64).contains(&sig) && !delivery::is_failure(&info) && !delivery::repeats_itself(known, &info) {
                queued::send(&info);
            }
        }
    });
    send_missed(e);
}

/// Signals that were pending when the predecessor died, or came while there was no process. Faults are answered by the
/// rollback, and what a timer or a broken pipe caused is caused again.
fn send_missed(e: &Engine) {
    const CAUSED_AGAIN: u64 = signals::FATAL | signals::bit(signals::SIGPIPE) | signals::bit(SIGALRM);
    const DEADLY: u64 = signals::bit(signals::SIGKILL) | signals::bit(signals::SIGSTOP);
    const STANDARD: u64 = 0x7fff_ffff;
    let c = control();
    let missed = c.missed.load(Acquire);
    let kept = missed & !c.timed.load(Relaxed);
    for sig in (1..64).filter(|&sig| kept & signals::bit(sig) != 0 && !e.queue.has(sig)) {
        if STANDARD & !CAUSED_AGAIN & !DEADLY & signals::bit(sig) != 0 {
            let mut info = [0; 16];
            (info[0], info[1]) = (sig as u64, SI_KERNEL);
            queued::send(&info);
        } else if STANDARD & signals::bit(sig) == 0 {
            // Nobody knows how many, and with which values.
            degrade(Degradation::SignalLost);
        }
    }
    // Who is to be stopped first has to be restored: the supervisor sees to that.
    c.missed.fetch_and(!missed | signals::bit(signals::SIGSTOP), AcqRel);
}
