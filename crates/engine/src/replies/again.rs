//! A recovered server does again what its predecessor did: what it is kept from meanwhile, and what is made of it if it does something else.

use super::{are_free, are_owed, owed, sending, OWED};
use crate::control::degrade;
use crate::dispatch::{self, Call};
use crate::mutant::without;
use crate::restore;
use crate::state::Engine;
use crate::sys::nr;
use core::sync::atomic::Ordering::*;
use outlast_image::degradation::Degradation;
use outlast_image::mutant::Mutant;

/// A program that tries in vain so often, with replies left, will not make them.
const PATIENCE: u32 = 10_000;

/// Input that was refused.
pub struct Refused {
    /// So often since something was replied or read.
    pub times: u32,
    ever: bool,
    /// The program is not kept from new input any more.
    too_often: bool,
}

impl Refused {
    pub const NOTHING: Refused = Refused { times: 0, ever: false, too_often: false };
}

/// Does the program do again what its predecessor did? Until the log is empty and all that was replied is replied again.
pub fn are_repeated(e: &Engine) -> bool {
    let more = are_owed() || !e.inputs.is_empty() && are_free(e);
    more && !e.replies.refused.too_often && !without(Mutant::ReplyOrder)
}

/// Where replies are repeated input comes again in its order, and nothing new comes: how many bytes were replied to where it comes from.
/// `None`: they are not.
pub fn reached(e: &mut Engine, source: u64) -> Option<u64> {
    if !are_repeated(e) {
        return None;
    }
    let seq = e.store().seq();
    Some(e.replies.replied(source, seq))
}

/// Is there something that is not to be sent again on this connection?
pub fn are_owed_on(e: &mut Engine, fd: i32) -> bool {
    are_owed() && e.fds.source(fd).is_some_and(|source| owed(e, source).is_some())
}

/// Is nothing new to come, as what is known already comes first? Whoever asks keeps it back.
pub fn keep_back(e: &mut Engine) -> bool {
    let does = are_repeated(e);
    e.replies.refused.ever |= does;
    does
}

/// Input is refused, as it had not come when the predecessor was here. False: it has been too often.
pub fn refuse(e: &mut Engine) -> bool {
    let refused = &mut e.replies.refused;
    (refused.times, refused.ever) = (refused.times + 1, true);
    if refused.times < PATIENCE {
        return true;
    }
    refused.too_often = true;
    degrade(Degradation::ReplyDiffers);
    for known in e.replies.known.owed() {
        known.left = 0;
    }
    OWED.store(0, Relaxed);
    caught_up(e);
    false
}

/// The program does something else than its predecessor did: what is left of this connection's replies it will not make.
pub fn differ(e: &mut Engine, source: u64) {
    if let Some(known) = owed(e, source) {
        known.left = 0;
        paid(e);
        degrade(Degradation::ReplyDiffers);
    }
}

/// A call that sends, and not as a reply.
pub fn sends_otherwise(e: &mut Engine, call: &Call) {
    let to = match call.nr {
        nr::SPLICE => call.args[2] as i32,
        _ => call.fd(),
    };
    let is_reply = sending::length(call).is_some();
    if let Some(source) = e.fds.source(to).filter(|_| !is_reply) {
        differ(e, source);
    }
}

/// Somebody who knows nothing of replies goes on with the program's connections.
pub fn leave() {
    if are_owed() {
        degrade(Degradation::ReplyDiffers);
    }
}

/// Nothing is left any more of one connection.
pub fn paid(e: &mut Engine) {
    OWED.fetch_sub(1, Relaxed);
    caught_up(e);
}

/// What comes from now on is new, if the log is empty as well.
pub fn caught_up(e: &mut Engine) {
    if are_owed() || !e.inputs.is_empty() {
        return;
    }
    dispatch::slow_down_waits(false);
    let Refused { ever, .. } = core::mem::replace(&mut e.replies.refused, Refused::NOTHING);
    if ever {
        // What was refused may have been an edge.
        restore::rearm(e);
    }
}

/// The program has closed it.
pub fn closed(e: &mut Engine, fd: i32) {
    let source = e.replies.known.owed().find(|known| known.fd == fd).map(|known| known.source);
    if let Some(source) = source {
        differ(e, source);
    }
}
