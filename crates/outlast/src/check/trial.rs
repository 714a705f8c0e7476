//! A trial: a small program is protected here and now, killed, and must go on. Nothing tells more about a machine.

use super::finding::Finding;
use outlast_image::degradation::Degradation;
use outlast_supervisor::remains::Remains;
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::status::{self, Status};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{kill_process, Pid, Signal};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Says that it is there, waits for a word and says it.
const SCRIPT: &str = "echo ready; read word; echo \"$word\"";
/// Seconds that each step may take on a busy machine.
const PATIENCE: i64 = 20;

/// What the trial shows.
pub fn make(state: &StateFolder) -> Vec<Finding> {
    let name = format!("check-{}", std::process::id());
    let mut run = Command::new("/proc/self/exe");
    run.args(["run", "--name", &name, "--", "/bin/sh", "-c", SCRIPT]);
    run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let findings = match run.spawn() {
        Ok(mut child) => {
            let findings = watch(state, &name, &mut child);
            end(&mut child);
            findings
        }
        Err(e) => vec![failed(format!("could not be started: {e}"))],
    };
    if let Ok(folder) = state.program(&name) {
        // What cannot be removed is shown by `ps --all`.
        let _ = Remains::remove(folder);
    }
    findings
}

/// Waits for what ends by itself if all went well: killed on its way out, its supervisor would have a successor, which may still
/// write to the folder that is to be removed.
fn end(child: &mut Child) {
    const PAUSE: Duration = Duration::from_millis(5);
    let until = Instant::now() + Duration::from_secs(PATIENCE as u64);
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
        std::thread::sleep(PAUSE);
    }
    let _ = (child.kill(), child.wait());
}

fn failed(how: String) -> Finding {
    Finding::lost("trial", format!("a small program under protection {how}"), None)
}

fn watch(state: &StateFolder, name: &str, child: &mut Child) -> Vec<Finding> {
    let (Some(output), Some(mut input)) = (child.stdout.take(), child.stdin.take()) else { return Vec::new() };
    let mut output = BufReader::new(output);
    if line(&mut output) != Some("ready\n".into()) {
        return vec![failed("did not start".into())];
    }
    let status = || state.program(name).and_then(|folder| status::of(&folder)).ok();
    let Some(before) = status() else { return vec![failed("is not to be seen".into())] };
    let mut findings = degradations(&before);
    let pid = before.pid.filter(|_| before.protected).and_then(Pid::from_raw);
    let Some(pid) = pid else {
        findings.push(failed("ran unprotected".into()));
        return findings;
    };
    let killed = kill_process(pid, Signal::KILL).is_ok();
    let went_on = killed && input.write_all(b"alive\n").is_ok() && line(&mut output) == Some("alive\n".into());
    findings.extend(status().iter().flat_map(degradations));
    findings.push(match went_on {
        true => Finding::kept("trial", "a small program was killed and went on as if nothing had happened"),
        false => failed("was killed and did not go on".into()),
    });
    findings
}

fn degradations(status: &Status) -> Vec<Finding> {
    let known = Degradation::ALL.iter().filter(|one| status.degradations.contains(&one.key()));
    known.map(|one| Finding::degradation(*one)).collect()
}

/// The next line, if it comes in time.
fn line(output: &mut BufReader<ChildStdout>) -> Option<String> {
    let patience = Timespec { tv_sec: PATIENCE, tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(output.get_ref(), PollFlags::IN)], Some(&patience));
    let mut line = String::new();
    (ready == Ok(1) && output.read_line(&mut line).is_ok()).then_some(line)
}
