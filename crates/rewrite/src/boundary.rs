//! Where instructions start, around a known one.
//!
//! x86 cannot be decoded backwards, and inside a process there are no symbols to start from. But a stream of instructions
//! decoded from a wrong byte falls into step with the right one after a few instructions, and one that does not meet a
//! known instruction is wrong for certain. So all streams are followed that begin in a *window* of [`SPREAD`] bytes well
//! before the place in question: one of them is the program's own, because no instruction is longer. What all that arrive
//! agree upon is true; where they disagree, a window further back is asked; where all windows disagree, nothing is said.
//!
//! What this cannot exclude: data between code less than a window's distance before the place, whose streams could all
//! agree on something wrong. Measured over whole libraries in `tests/boundary.rs`: no wrong answer.

use crate::decode::{decode, Undecodable};

/// Bytes in a window: the longest instruction and one more.
pub const SPREAD: usize = 16;
/// How far before the place windows begin, in bytes: in the order in which they are asked.
const WINDOWS: [usize; 4] = [64, 112, 176, 240];
/// How far before a site starts are told, in bytes.
const TOLD: usize = 32;

/// Starts of the instructions before a site, nearest first, as far as they are certain.
#[derive(Clone, Copy, Debug)]
pub struct Preceding {
    /// Bit `i` stands for `i + 1` bytes before `site`.
    starts: u32,
    site: usize,
}

impl Iterator for Preceding {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.starts == 0 {
            return None;
        }
        let distance = self.starts.trailing_zeros() as usize + 1;
        self.starts &= self.starts - 1;
        Some(self.site - distance)
    }
}

/// A stream of instructions that begins at some offset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    /// Does not arrive at the site: not the program's.
    Wrong,
    /// Comes upon bytes of unknown length: it may be the program's.
    Unknown,
    /// Arrives at the site, with these starts in the last [`TOLD`] bytes (as in [`Preceding`]).
    Arrives(u32),
}

/// The instructions before the one that starts at `code[site]`.
pub fn preceding(code: &[u8], site: usize) -> Preceding {
    const FARTHEST: usize = WINDOWS[WINDOWS.len() - 1];
    // By distance from the site.
    let mut streams = [Stream::Wrong; FARTHEST + 1];
    streams[0] = Stream::Arrives(0);
    let mut followed = 0;
    for window in WINDOWS {
        if window > site {
            break;
        }
        for distance in followed + 1..=window {
            streams[distance] = match decode(&code[site - distance..]) {
                Ok(instruction) => match distance.checked_sub(instruction.len as usize).map(|next| streams[next]) {
                    Some(Stream::Arrives(starts)) if distance <= TOLD => Stream::Arrives(starts | 1 << (distance - 1)),
                    Some(stream) => stream,
                    None => Stream::Wrong,
                },
                Err(Undecodable::Unknown) => Stream::Unknown,
                Err(_) => Stream::Wrong,
            };
        }
        followed = window;
        let starts = agreed(&streams[window - SPREAD + 1..=window]);
        if starts != 0 {
            return Preceding { starts, site };
        }
    }
    Preceding { starts: 0, site }
}

/// The starts that all arriving streams share, from the site back to the first disagreement.
fn agreed(streams: &[Stream]) -> u32 {
    let (mut all, mut any) = (u32::MAX, 0);
    for stream in streams {
        match stream {
            Stream::Wrong => {}
            Stream::Unknown => return 0,
            Stream::Arrives(starts) => {
                all &= starts;
                any |= starts;
            }
        }
    }
    let disagreement = any & !all;
    let near = disagreement.wrapping_sub(1) & !disagreement;
    any & all & near
}

/// Whether an instruction of the program may start at `code[at]`: false only if, of the streams of one window, none
/// starts one there, although some pass by.
pub fn may_start(code: &[u8], at: usize) -> bool {
    !WINDOWS.iter().any(|window| at >= *window && passed_by(code, at, *window))
}

fn passed_by(code: &[u8], at: usize, window: usize) -> bool {
    let first = at - window;
    // Bit `i` stands for `offset + i`.
    let mut starts: u32 = (1 << SPREAD) - 1;
    for offset in 0..window {
        if starts & 1 != 0 {
            match decode(&code[first + offset..]) {
                Ok(instruction) => starts |= 1 << instruction.len,
                Err(Undecodable::Unknown) => return false,
                Err(_) => {}
            }
        }
        starts >>= 1;
    }
    starts & 1 == 0 && starts != 0
}
