//! A tmux server alone, and clients that come one after the other with what it shall keep for them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::case::{Case, Program, Stage, SPREAD};
use crate::diagnosis;
use crate::drive::{drain_both, or_end_all, spawn, status_of, Drive, Seen};
use crate::failure::{Failure, Outcome, Tried};

const TMUX: &str = "/usr/bin/tmux";
const SOCKET: &str = "socket";

pub const CASES: &[Case] =
    &[Case::new("tmux", server, |_| Drive::Own(Box::new(|command, room, seed| converse(command, &room.work(), seed))))
        .needs(&[TMUX])
        .pace(SPREAD)];

fn server(_: &Stage) -> Outcome<Program> {
    // In the foreground, and without a session it goes on all the same.
    Ok(Program::new(&[TMUX, "-D", "-S", SOCKET, "-f", "/dev/null"]))
}

/// Options that count, buffers that are appended to, formats, a file; each answer hangs on all requests before it.
fn requests() -> Vec<Vec<String>> {
    let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
    let mut all = vec![words("set-option -s buffer-limit 12")];
    for i in 0..60 {
        all.push(words(&format!("set-option -ag @seen -{i}")));
        all.push(words("show-options -gv @seen"));
        all.push(words(&format!("set-buffer -b buffer-{} {}", i % 15, "text-".repeat(1 + i * 7 % 90))));
        all.push(words(&format!("set-buffer -a -b buffer-{} more-{i}", i % 4)));
        all.push(words("list-buffers -F #{buffer_name}:#{buffer_size}"));
        if i % 10 == 9 {
            all.push(words(&format!("save-buffer -a -b buffer-{} saved", i % 4)));
        }
    }
    all
}

fn converse(mut command: Command, work: &Path, seed: u64) -> Outcome<Seen> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = spawn(command)?;
    let stdout = child.stdout.take().expect("a pipe was asked for");
    let stderr = child.stderr.take().expect("a pipe was asked for");
    std::thread::scope(|scope| {
        let draining = drain_both(scope, stdout, stderr, 0, seed);
        let mut seen = Seen::default();
        let answers = or_end_all(ask_all(work))?;
        seen.streams.insert("answers".into(), answers);
        seen.status = Some(status_of(child)?);
        draining.into_streams(&mut seen.streams)?;
        Ok(seen)
    })
}

fn ask_all(work: &Path) -> Outcome<Vec<u8>> {
    let ask = |request: &[String]| {
        diagnosis::note("request", request.join(" "));
        // "-N" starts no second server where this one is not yet there.
        let mut client = Command::new(TMUX);
        client.args(["-N", "-S", SOCKET]).args(request).current_dir(work).env_clear().env("LANG", "C.UTF-8");
        client.stdin(Stdio::null()).output().tried("run a client of tmux")
    };
    let there = (0..15_000).any(|_| {
        std::thread::sleep(Duration::from_millis(2));
        ask(&["list-commands".into()]).is_ok_and(|answer| answer.status.success())
    });
    if !there {
        return Err(Failure::Told("no server answers".into()));
    }
    let mut answers = Vec::new();
    for request in requests().iter().chain([&vec!["kill-server".to_string()]]) {
        let answer = ask(request)?;
        answers.extend_from_slice(&answer.stdout);
        answers.extend_from_slice(&answer.stderr);
        answers.extend_from_slice(format!("({})\n", answer.status).as_bytes());
    }
    Ok(answers)
}
