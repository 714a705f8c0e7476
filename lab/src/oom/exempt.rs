//! Supervisor and anchor are exempt from the OOM killer, whoever takes their places; the program never is.

use super::group::Group;
use super::program::Program;
use super::{expect, Finding, User};
use crate::shell::Shell;
use serde_json::Value;
use std::error::Error;

/// Has a new anchor, since one inherits limits; becomes another program; ends.
const SCRIPT: &str =
    r#"sh -c 'read x; ulimit -n 200; echo limited; read x; exec sh -c "echo became; read x; echo over"'"#;

/// Who they are, as soon as the kernel has the right score for each.
pub fn await_exempt(shell: &mut Shell, program: &Program) -> Result<Value, Box<dyn Error>> {
    let mut last = String::new();
    let found = shell.until("who is exempt", |shell| {
        let status = program.status(shell)?;
        let mut score = |who: &str| shell.run(&format!("cat /proc/{}/oom_score_adj", status[who]));
        let scores = (score("supervisor")?.1, score("anchor")?.1, score("pid")?.1);
        last = format!("{scores:?}: {status}");
        Ok((scores == ("-1000\n".into(), "-1000\n".into(), "0\n".into())).then_some(status))
    });
    found.map_err(|what| format!("{what}: {last}").into())
}

pub fn all(shell: &mut Shell) -> Finding {
    let group = Group::new(shell, "exempt", false)?;
    let program = Program::start(shell, "exempt", User::Root, &group, "", SCRIPT)?;
    let mut status = await_exempt(shell, &program)?;
    for said in ["limited", "became"] {
        program.enter(shell)?;
        program.await_told(shell, said)?;
        let now = await_exempt(shell, &program)?;
        expect(now["anchor"] != status["anchor"], || format!("it {said}, and has the same anchor"))?;
        status = now;
    }
    // That was meant to be.
    let lost = program.count(shell, "anchor-renewed")?;
    expect(lost == 0, || format!("{lost} anchors were lost"))?;
    let dies = |shell: &mut Shell, who: &str, event| {
        let pid = program.status(shell)?[who].clone();
        shell.ask(&format!("kill -9 {pid}"))?;
        program.await_event(shell, event, 1)?;
        await_exempt(shell, &program)
    };
    dies(shell, "anchor", "anchor-renewed")?;
    dies(shell, "supervisor", "supervisor-restarted")?;
    dies(shell, "pid", "recovered")?;
    program.enter(shell)?;
    let end = program.await_end(shell)?;
    expect(end == 137, || format!("the supervisor that was killed ended with status {end}"))?;
    program.expect_nothing_lost(shell, "limited\nbecame\nover\n")?;
    Ok("after a start, a new limit, an execve, and the death of anchor, supervisor and program".into())
}
