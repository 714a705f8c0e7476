//! What two nodes say to each other: frames, each its length in four bytes and then postcard's bytes. The node that has connected asks, the
//! other one answers and tells; both ask for signs of life. All of it is untrusted.

use outlast_core::Payload;
use serde::{Deserialize, Serialize};

/// Whoever means something else by these bytes is not spoken to.
pub const VERSION: u16 = 2;
/// No frame is longer: a look at a machine of some hundred processors takes less than a tenth.
pub const LONGEST: usize = 1 << 20;
/// No name of a pin, operation or event is longer.
pub const LONGEST_NAME: usize = 64;
/// Nor is what is said in words, in which there are no control characters: it is shown to people.
pub const LONGEST_TEXT: usize = 1024;
/// Nor is the argument of an operation: whoever serves others has more to do.
pub const LONGEST_ARGUMENT: usize = 16 << 10;
/// As many pins may be offered, each with so many operations and events.
const MOST_OFFERED: usize = 64;
/// As many questions of one node may be open.
pub const MOST_OPEN: usize = 64;

/// One thing that is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frame {
    /// Comes first, from both.
    Hello {
        magic: [u8; 7],
        version: u16,
    },
    /// Is to be answered at once.
    Ping(u64),
    Pong(u64),
    Ask {
        id: u64,
        ask: Ask,
    },
    Answer {
        id: u64,
        answer: Result<Answer, String>,
    },
    Event(Told),
    /// What follows is the end, and is meant.
    Bye(String),
}

impl Frame {
    pub fn hello() -> Self {
        Self::Hello { magic: *b"outlast", version: VERSION }
    }
}

/// The calls of RMK's §3.1, from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// Which pins there are for whoever asks.
    Describe,
    Use {
        pin: String,
    },
    Release {
        pin: String,
    },
    Command {
        pin: String,
        operation: String,
        argument: Payload,
    },
    Subscribe {
        pin: String,
        event: String,
    },
    Unsubscribe {
        pin: String,
        event: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    Done,
    Pins(Vec<Offer>),
    Result(Payload),
}

/// A pin, as far as whoever asks may use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    pub name: String,
    pub what: String,
    pub operations: Vec<String>,
    pub events: Vec<String>,
}

/// An event that was subscribed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub pin: String,
    pub name: String,
    pub program: Option<String>,
    pub payload: Payload,
}

/// Why a node is not spoken to any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, displaydoc::Display)]
pub enum Malformed {
    /// a frame of {0} bytes
    TooLong(usize),
    /// a frame that cannot be read
    Unreadable,
    /// a name, text or argument that is too long, or no text
    OutOfBounds,
}

/// Appends a frame. False: it or something in it is too long, and nothing was appended.
#[must_use]
pub fn write(out: &mut impl Extend<u8>, frame: &Frame) -> bool {
    match postcard::to_allocvec(frame) {
        Ok(bytes) if bytes.len() <= LONGEST && is_in_bounds(frame) => {
            out.extend((bytes.len() as u32).to_be_bytes());
            out.extend(bytes);
            true
        }
        _ => false,
    }
}

/// Bytes as they come in, and the frames in them.
#[derive(Default)]
pub struct Reader {
    bytes: Vec<u8>,
    /// As many were taken already.
    taken: usize,
}

impl Reader {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend(bytes);
    }

    /// The next one; none: the rest of it is still to come.
    ///
    /// # Errors
    /// It is none. Nothing can be read after that.
    pub fn take(&mut self) -> Result<Option<Frame>, Malformed> {
        let Some((length, rest)) = self.bytes[self.taken..].split_first_chunk() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > LONGEST {
            return Err(Malformed::TooLong(length));
        }
        let Some(bytes) = rest.get(..length) else { return Ok(None) };
        let frame = match postcard::take_from_bytes::<Frame>(bytes) {
            Ok((frame, [])) => frame,
            _ => return Err(Malformed::Unreadable),
        };
        self.taken += 4 + length;
        is_in_bounds(&frame).then_some(Some(frame)).ok_or(Malformed::OutOfBounds)
    }
}

fn is_in_bounds(frame: &Frame) -> bool {
    let is_legible = |text: &String, longest| text.len() <= longest && !text.contains(char::is_control);
    let name = |name: &String| is_legible(name, LONGEST_NAME);
    let text = |text: &String| is_legible(text, LONGEST_TEXT);
    match frame {
        Frame::Hello { .. } | Frame::Ping(_) | Frame::Pong(_) => true,
        Frame::Ask { ask, .. } => match ask {
            Ask::Describe => true,
            Ask::Use { pin } | Ask::Release { pin } => name(pin),
            Ask::Command { pin, operation, argument } => {
                name(pin) && name(operation) && argument.len() <= LONGEST_ARGUMENT
            }
            Ask::Subscribe { pin, event: other } | Ask::Unsubscribe { pin, event: other } => name(pin) && name(other),
        },
        Frame::Answer { answer: Ok(Answer::Pins(pins)), .. } => {
            let offer = |Offer { name: pin, what, operations, events }: &Offer| {
                let is_short = operations.len() + events.len() <= MOST_OFFERED;
                is_short && name(pin) && text(what) && operations.iter().chain(events).all(name)
            };
            pins.len() <= MOST_OFFERED && pins.iter().all(offer)
        }
        Frame::Answer { answer: Ok(_), .. } => true,
        Frame::Answer { answer: Err(why), .. } | Frame::Bye(why) => text(why),
        Frame::Event(told) => name(&told.pin) && name(&told.name) && told.program.as_ref().is_none_or(text),
    }
}

/// As much of a text as may be said, and as it may be.
pub fn legible(text: &str) -> String {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Xorshift: tests draw the same each time.
    struct Random(u64);

    impl Random {
        fn next(&mut self, below: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % below as u64) as usize
        }
    }

    fn all() -> Vec<Frame> {
        let (pin, event) = (String::from("schl"), String::from("switched"));
        let payload = Payload::of(&vec![7u64; 40]).unwrap();
        let offer = Offer { name: pin.clone(), what: "w".into(), operations: vec!["watch".into()], events: vec![] };
        let asks = vec![
            Ask::Describe,
            Ask::Use { pin: pin.clone() },
            Ask::Release { pin: pin.clone() },
            Ask::Command { pin: pin.clone(), operation: "watch".into(), argument: payload.clone() },
            Ask::Subscribe { pin: pin.clone(), event: event.clone() },
            Ask::Unsubscribe { pin: pin.clone(), event: event.clone() },
        ];
        let answers = vec![
            Ok(Answer::Done),
            Ok(Answer::Pins(vec![offer])),
            Ok(Answer::Result(payload.clone())),
            Err("no".into()),
        ];
        let asks = asks.into_iter().map(|ask| Frame::Ask { id: 1 << 40, ask });
        let answers = answers.into_iter().map(|answer| Frame::Answer { id: 3, answer });
        let others = [
            Frame::hello(),
            Frame::Ping(1),
            Frame::Pong(u64::MAX),
            Frame::Event(Told { pin, name: event, program: Some("it".into()), payload }),
            Frame::Bye("enough".into()),
        ];
        asks.chain(answers).chain(others).collect()
    }

    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let mut random = Random(7);
        for _ in 0..200 {
            let mut bytes = Vec::new();
            all().iter().for_each(|frame| assert!(write(&mut bytes, frame)));
            let (mut reader, mut read, mut rest) = (Reader::default(), Vec::new(), &bytes[..]);
            while !rest.is_empty() {
                let (now, later) = rest.split_at(1 + random.next(rest.len().min(60)));
                reader.push(now);
                rest = later;
                while let Some(frame) = reader.take().unwrap() {
                    read.push(frame);
                }
            }
            assert_eq!(read, all());
        }
    }

    #[test]
    fn what_was_changed_or_cut_is_refused_or_another_frame_and_never_a_panic() {
        let mut random = Random(11);
        for _ in 0..20_000 {
            let mut bytes = Vec::new();
            let frames = all();
            assert!(write(&mut bytes, &frames[random.next(frames.len())]));
            for _ in 0..1 + random.next(4) {
                let at = random.next(bytes.len());
                bytes[at] = random.next(256) as u8;
            }
            bytes.truncate(random.next(bytes.len() + 1));
            let mut reader = Reader::default();
            reader.push(&bytes);
            while let Ok(Some(frame)) = reader.take() {
                // What can be read can be written.
                assert!(write(&mut Vec::new(), &frame));
            }
        }
    }

    #[test]
    fn bounds_hold_at_their_edges() {
        // What another one says who does not keep to them is refused, and it is not said here.
        let read = |frame: &Frame| {
            let bytes = postcard::to_allocvec(frame).unwrap();
            let mut reader = Reader::default();
            reader.push(&(bytes.len() as u32).to_be_bytes());
            reader.push(&bytes);
            let read = reader.take();
            assert_eq!(write(&mut Vec::new(), frame), read.is_ok());
            read
        };
        let name = |pin: String| Frame::Ask { id: 1, ask: Ask::Use { pin } };
        let argument = |length: usize| {
            let argument = Payload::of(&vec![0u8; length]).unwrap();
            Frame::Ask { id: 1, ask: Ask::Command { pin: "p".into(), operation: "o".into(), argument } }
        };
        let offer = |pins: usize, events: usize| {
            let events = vec!["e".into(); events];
            let offer = Offer { name: "p".into(), what: "w".into(), operations: vec!["o".into()], events };
            Frame::Answer { id: 1, answer: Ok(Answer::Pins(vec![offer; pins])) }
        };
        let edges = [
            (name("p".repeat(LONGEST_NAME)), name("p".repeat(LONGEST_NAME + 1))),
            (name("p".into()), name("p\n".into())),
            (Frame::Bye("w".repeat(LONGEST_TEXT)), Frame::Bye("w".repeat(LONGEST_TEXT + 1))),
            (Frame::Bye("ü".into()), Frame::Bye("\u{1b}[2J".into())),
            // The length is two bytes of it.
            (argument(LONGEST_ARGUMENT - 2), argument(LONGEST_ARGUMENT - 1)),
            (offer(MOST_OFFERED, 1), offer(MOST_OFFERED + 1, 1)),
            (offer(1, MOST_OFFERED - 1), offer(1, MOST_OFFERED)),
        ];
        for (good, bad) in edges {
            assert_eq!(read(&good), Ok(Some(good)));
            assert!(read(&bad) == Err(Malformed::OutOfBounds), "{bad:?}");
        }
        let mut reader = Reader::default();
        reader.push(&(LONGEST as u32 + 1).to_be_bytes());
        assert_eq!(reader.take(), Err(Malformed::TooLong(LONGEST + 1)));
        let payload = Payload::of(&vec![0u8; LONGEST]).unwrap();
        assert!(!write(&mut Vec::new(), &Frame::Answer { id: 1, answer: Ok(Answer::Result(payload)) }));
        assert_eq!(legible(&"ä".repeat(LONGEST_TEXT)).len(), LONGEST_TEXT);
        assert_eq!(legible("a\nb\u{9b}c"), "a b c");
    }
}
