//! Commands that the daemon has executed: it waits for none of them for long.

use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often is looked whether one has ended.
const PULSE: Duration = Duration::from_millis(5);

/// Which of a command's streams is read.
pub enum Stream {
    Output,
    Error,
}

/// What became of a command.
pub enum End {
    /// It has ended in time, and has said that on the stream.
    With(ExitStatus, Vec<u8>),
    /// It was killed.
    Late,
}

/// Executes a command and reads at most `longest` bytes of one of its streams. Its other streams are as the caller has set them.
pub fn run(command: &mut Command, stream: Stream, longest: u64, patience: Duration) -> io::Result<End> {
    let mut child = match stream {
        Stream::Output => command.stdout(Stdio::piped()),
        Stream::Error => command.stderr(Stdio::piped()),
    }
    .spawn()?;
    let pipe: Option<Box<dyn Read + Send>> = match stream {
        Stream::Output => child.stdout.take().map(|pipe| Box::new(pipe) as _),
        Stream::Error => child.stderr.take().map(|pipe| Box::new(pipe) as _),
    };
    let reader = thread::spawn(move || {
        let mut said = Vec::new();
        pipe.map_or(Ok(0), |pipe| pipe.take(longest).read_to_end(&mut said)).map(|_| said)
    });
    let began = Instant::now();
    while began.elapsed() < patience {
        if let Some(status) = child.try_wait()? {
            let said = reader.join().unwrap_or_else(|_| Ok(Vec::new()))?;
            return Ok(End::With(status, said));
        }
        thread::sleep(PULSE);
    }
    // In a control group that is frozen it ends when that goes on.
    let _ = child.kill();
    thread::spawn(move || child.wait());
    Ok(End::Late)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn what_it_said_comes_with_how_it_ended() {
        let end = run(&mut shell("echo said; echo wrong >&2; exit 3"), Stream::Output, 100, Duration::from_secs(60));
        assert!(matches!(end, Ok(End::With(status, said)) if status.code() == Some(3) && said == b"said\n"));
        let end = run(&mut shell("echo wrong >&2; echo said"), Stream::Error, 3, Duration::from_secs(60));
        assert!(matches!(end, Ok(End::With(status, said)) if status.success() && said == b"wro"));
    }

    #[test]
    fn who_takes_too_long_is_not_waited_for() {
        let end = run(&mut shell("exec sleep 600"), Stream::Output, 100, Duration::from_millis(50));
        assert!(matches!(end, Ok(End::Late)));
    }

    #[test]
    fn what_cannot_be_executed_is_an_error() {
        assert!(run(&mut Command::new("/nowhere"), Stream::Output, 100, Duration::from_secs(60)).is_err());
    }
}
