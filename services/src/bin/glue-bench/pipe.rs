//! What a call is compared with: a byte to another process and back.

use std::io::{Read, Write};

/// `cat`, which sends back what it gets.
pub struct Pipe {
    echo: std::process::Child,
}

impl Pipe {
    pub fn new() -> Self {
        let piped = std::process::Stdio::piped;
        let echo = std::process::Command::new("cat").stdin(piped()).stdout(piped()).spawn();
        Self { echo: echo.expect("cat") }
    }

    pub fn round_trip(&mut self) {
        let mut byte = [1];
        self.echo.stdin.as_mut().expect("piped").write_all(&byte).expect("a byte");
        self.echo.stdout.as_mut().expect("piped").read_exact(&mut byte).expect("a byte");
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        drop(self.echo.stdin.take());
        let _ = self.echo.wait();
    }
}
