//! Programs that were put into another group than the one that they were started in: a recovered one is there, too.

use super::group::Group;
use super::program::{hoard, Program};
use super::{expect, Finding, User, MIB};
use crate::shell::Shell;
use serde_json::Value;
use std::error::Error;

const WANTED: u32 = 96;
const SCARCE: u64 = 80;
const ENOUGH: u64 = 400;
const STEP: u32 = 8;

/// In which group a process is.
fn group_of(shell: &mut Shell, pid: &Value) -> Result<String, Box<dyn Error>> {
    let (_, said) = shell.run(&format!("cat /proc/{pid}/cgroup"))?;
    Ok(said.trim().trim_start_matches("0::").into())
}

/// The OOM killer kills it for the limit of a group above the one that it is in now.
pub fn below_a_limit(shell: &mut Shell) -> Finding {
    let first = Group::new(shell, "moved", false)?;
    let outer = Group::limited(shell, "outer", true, SCARCE)?;
    outer.set(shell, "cgroup.subtree_control", "+memory")?;
    let inner = Group::new(shell, "outer/inner", false)?;
    let program = Program::start(shell, "moved", User::Root, &first, "", &format!("/hoard {WANTED} {STEP}"))?;
    let before = program.await_protected(shell)?;
    shell.ask(&format!("echo 700 >/proc/{}/oom_score_adj", before["pid"]))?;
    inner.set(shell, "cgroup.procs", &before["pid"].to_string())?;
    program.enter(shell)?;
    program.close(shell)?;
    program.await_event(shell, "recovered", 1)?;
    let after = program.status(shell)?;
    shell.until("it is where the dead one was", |shell| {
        let pid = program.status(shell)?["pid"].clone();
        let score = shell.run(&format!("cat /proc/{pid}/oom_score_adj"))?.1;
        Ok((group_of(shell, &pid)? == "/outer/inner" && score.trim() == "700").then_some(()))
    })?;
    for who in ["supervisor", "anchor"] {
        let place = group_of(shell, &after[who])?;
        expect(place == "/moved" && after[who] == before[who], || format!("the {who} is in {place}: {after}"))?;
    }
    outer.allow(shell, ENOUGH)?;
    let status = program.await_end(shell)?;
    expect(status == 0, || format!("status {status}"))?;
    program.expect_nothing_lost(shell, &hoard(WANTED, STEP))?;
    let log = program.log(shell)?;
    let of = |event: &str| log.iter().filter(|entry| entry["event"] == event).cloned().collect::<Vec<_>>();
    let (deaths, told) = (of("killed"), of("oom-killed"));
    expect(deaths.len() == told.len(), || {
        format!("{} deaths, of which {} are told to be the OOM killer's", deaths.len(), told.len())
    })?;
    // Of one that was killed just before the limit was raised the new limit is told: the kernel does not tell the old one any more.
    let causes = [SCARCE, ENOUGH].map(|limit| format!("control group /outer may use {} bytes", limit * MIB));
    let is_right = |entry: &Value| causes.iter().any(|cause| entry["cause"] == **cause);
    expect(told.iter().all(is_right) && told[0]["cause"] == *causes[0], || format!("{told:?}"))?;
    Ok(format!("killed {} times for the limit of a group above", told.len()))
}

/// Its user moves it, and it dies. `delegated`: the groups are the user's own, so that outlast may do the same.
pub fn by_its_user(shell: &mut Shell, delegated: bool) -> Finding {
    let name = if delegated { "delegated" } else { "forbidden" };
    let top = Group::new(shell, name, false)?;
    top.set(shell, "cgroup.subtree_control", "+memory")?;
    let first = Group::new(shell, &format!("{name}/first"), false)?;
    let second = Group::new(shell, &format!("{name}/second"), false)?;
    if delegated {
        shell.ask(&format!("chown -R 1000:1000 {}", top.path()))?;
    }
    let program = Program::start(shell, name, User::Ordinary, &first, "", "/hoard 8 8")?;
    let before = program.await_protected(shell)?;
    second.set(shell, "cgroup.procs", &before["pid"].to_string())?;
    shell.ask(&format!("kill -9 {}", before["pid"]))?;
    program.await_event(shell, "recovered", 1)?;
    let pid = program.await_protected(shell)?["pid"].clone();
    let place = group_of(shell, &pid)?;
    expect(place.ends_with(if delegated { "/second" } else { "/first" }), || format!("it is in {place}"))?;
    let log = program.log(shell)?;
    let told = log.iter().filter(|entry| entry["cause"] == "control-group").count();
    expect((told == 0) == delegated, || format!("{log:#?}"))?;
    program.enter(shell)?;
    program.close(shell)?;
    let status = program.await_end(shell)?;
    let told = program.told(shell)?;
    expect(status == 0 && told == hoard(8, 8), || format!("status {status}, it told {told:?}"))?;
    Ok(format!("recovered in {place}{}", if delegated { "" } else { ", and the log says so" }))
}
