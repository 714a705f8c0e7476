//! A machine that is told what to do, command by command, from outside: what is found wrong is found here, not there.

use crate::guest::Guest;
use std::error::Error;
use std::time::{Duration, Instant};

/// For whatever is awaited, on a machine that is emulated on a busy one.
const PATIENCE: Duration = Duration::from_secs(200);
/// An emulated serial line may forget to tell of what has come: after so long it is told once more, by an empty line.
const KNOCK: Duration = Duration::from_secs(5);
/// Between two looks at what the machine has said.
const PULSE: Duration = Duration::from_millis(5);
/// Between two looks at how something stands.
const PAUSE: Duration = Duration::from_millis(100);

/// A machine that waits for commands.
pub struct Shell {
    guest: Guest,
    /// Bytes of what it said that were read.
    heard: usize,
}

impl Shell {
    /// Of a machine that boots.
    pub fn of(guest: Guest) -> Result<Shell, Box<dyn Error>> {
        let mut shell = Shell { guest, heard: 0 };
        shell.answer()?;
        Ok(shell)
    }

    /// Has the machine run a command; its status, and what it said.
    pub fn run(&mut self, command: &str) -> Result<(i32, String), Box<dyn Error>> {
        assert!(!command.contains('\n'), "a command is a line");
        self.guest.tell(&format!("{command}\n"))?;
        self.answer().map_err(|e| format!("{command}: {e}").into())
    }

    /// The same; what it said, for it must succeed.
    pub fn ask(&mut self, command: &str) -> Result<String, Box<dyn Error>> {
        match self.run(command)? {
            (0, said) => Ok(said),
            (status, said) => Err(format!("{command}: status {status}: {said}").into()),
        }
    }

    /// Looks again and again, until there is what is wanted; `what` names it.
    pub fn until<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&mut Shell) -> Result<Option<T>, Box<dyn Error>>,
    ) -> Result<T, Box<dyn Error>> {
        let begun = Instant::now();
        loop {
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("not so after {PATIENCE:?}: {what}").into());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// What kernel and first process said.
    pub fn console(&self) -> String {
        self.guest.console()
    }

    /// Switches the machine off.
    pub fn end(self) -> Result<(), Box<dyn Error>> {
        self.guest.lose_power()?;
        Ok(())
    }

    fn answer(&mut self) -> Result<(i32, String), Box<dyn Error>> {
        let begun = Instant::now();
        let mut knocked = begun;
        loop {
            let said = self.guest.said(self.heard);
            if let Some((text, status, whole)) = ending(&said) {
                self.heard += whole;
                return Ok((status, String::from_utf8_lossy(&said[..text]).into_owned()));
            }
            if self.guest.is_off()? {
                return Err(format!("the machine is off; the console: {}", self.console()).into());
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("no answer after {PATIENCE:?}, only {:?}", String::from_utf8_lossy(&said)).into());
            }
            if knocked.elapsed() > KNOCK {
                knocked = Instant::now();
                self.guest.tell("\n")?;
            }
            std::thread::sleep(PULSE);
        }
    }
}

/// Where what a command said ends, its status, and where the line with it ends.
fn ending(said: &[u8]) -> Option<(usize, i32, usize)> {
    let text = said.iter().position(|byte| *byte == 0x1e)?;
    let length = said[text..].iter().position(|byte| *byte == b'\n')?;
    let status = std::str::from_utf8(&said[text + 1..text + length]).ok()?.trim().parse().ok()?;
    Some((text, status, text + length + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_or_none() {
        assert_eq!(ending(b"one\ntwo\n\x1e 0\nnext"), Some((8, 0, 12)));
        assert_eq!(ending(b"\x1e 137\n"), Some((0, 137, 6)));
        assert_eq!(ending(b"one\n\x1e 13"), None);
        assert_eq!(ending(b"one\n"), None);
    }
}
