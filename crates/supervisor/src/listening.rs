//! Sockets that a manager of services has opened for whom it starts (socket activation): LISTEN_PID says for which process they are.
//! That is this one; the program is its child, and must find its own number there.

use std::ffi::c_char;
use std::ptr::null;

const NAME: &[u8] = b"LISTEN_PID=";
/// Digits of a process id, and a NUL.
const ROOM: usize = 12;

/// The environment of a child to which the sockets go, prepared before there is one.
pub struct Listening {
    word: [u8; NAME.len() + ROOM],
    words: Vec<*const c_char>,
    /// Where among them that word is.
    at: usize,
}

impl Listening {
    /// None: there are no sockets for this process.
    pub fn prepare() -> Option<Self> {
        std::env::var("LISTEN_PID").ok().filter(|pid| *pid == std::process::id().to_string())?;
        let mut words = Vec::new();
        // SAFETY: the environment ends with a null pointer, and nobody changes it: there is no other thread that would.
        unsafe {
            let mut next = libc::environ.cast::<*const c_char>();
            while !(*next).is_null() {
                words.push(*next);
                next = next.add(1);
            }
        }
        let is_it = |word: &*const c_char| {
            // SAFETY: each is a string that ends with a NUL.
            unsafe { std::ffi::CStr::from_ptr(*word) }.to_bytes().starts_with(NAME)
        };
        let at = words.iter().position(is_it)?;
        words.push(null());
        Some(Self { word: [0; NAME.len() + ROOM], words, at })
    }

    /// The environment with the number of this process, the child. Makes one system call and allocates nothing.
    pub fn environment(&mut self) -> *const *const c_char {
        write(&mut self.word, std::process::id());
        self.words[self.at] = self.word.as_ptr().cast();
        self.words.as_ptr()
    }
}

fn write(word: &mut [u8; NAME.len() + ROOM], mut number: u32) {
    word[..NAME.len()].copy_from_slice(NAME);
    let len = 1 + number.checked_ilog10().unwrap_or(0) as usize;
    for digit in word[NAME.len()..][..len].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_whole() {
        for number in [0, 7, 10, 4_194_304, u32::MAX] {
            let mut word = [0; NAME.len() + ROOM];
            write(&mut word, number);
            let text = std::ffi::CStr::from_bytes_until_nul(&word).unwrap().to_str().unwrap();
            assert_eq!(text, format!("LISTEN_PID={number}"));
        }
    }
}
