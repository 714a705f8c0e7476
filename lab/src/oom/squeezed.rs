//! Limits that change under a program that runs.

use super::group::Group;
use super::program::{hoard, Program};
use super::{expect, Finding, User, MIB};
use crate::shell::Shell;
use std::time::Duration;

/// What the program has, and what is enough for it and its store; MiB.
const WANTED: u32 = 64;
const ENOUGH: u64 = 400;
const STEP: u32 = 8;

/// Long enough for what is tried at once.
const WHILE: Duration = Duration::from_secs(10);

/// The limit falls to `limit` MiB, below what is used, and is raised again.
pub fn lowered(shell: &mut Shell, limit: u64) -> Finding {
    let name = format!("lowered-{limit}");
    let group = Group::limited(shell, &name, true, ENOUGH)?;
    let program = Program::start(shell, &name, User::Root, &group, "", &format!("/hoard {WANTED} {STEP}"))?;
    program.enter(shell)?;
    program.await_told(shell, "full")?;
    let before = program.await_protected(shell)?;
    // The write itself kills until the limit holds or nobody is left to be killed.
    shell.ask(&format!("echo {} >{}/memory.max &", limit * MIB, group.path()))?;
    shell.until("a kill", |shell| Ok((group.events(shell, "oom_kill")? > 0).then_some(())))?;
    // Where the store alone is more than the limit, supervisor and anchor get nothing either, and wait.
    std::thread::sleep(WHILE);
    let (state, gave_up) = (program.status(shell)?["state"].clone(), program.count(shell, "gave-up")?);
    expect(gave_up == 0 && state != "exited", || format!("it is {state}, given up {gave_up} times"))?;
    group.allow(shell, ENOUGH)?;
    program.close(shell)?;
    let status = program.await_end(shell)?;
    expect(status == 0, || format!("status {status}"))?;
    program.expect_nothing_lost(shell, &hoard(WANTED, STEP))?;
    let (kills, recovered) = (program.count(shell, "oom-killed")?, program.count(shell, "recovered")?);
    let resumed = program.count(shell, "resumed")? + program.count(shell, "supervisor-restarted")?;
    expect(recovered > 0 && resumed == 0, || format!("recovered {recovered} times, but {resumed}: {before}"))?;
    Ok(format!("{state} meanwhile; killed {kills} times, recovered {recovered} times"))
}

/// The kernel slows down whoever takes more (`memory.high`), by seconds a call: nothing hangs, and nobody is killed for it.
pub fn throttled(shell: &mut Shell) -> Finding {
    let group = Group::new(shell, "throttled", false)?;
    let program = Program::start(shell, "throttled", User::Root, &group, "", &format!("/hoard {WANTED} {STEP}"))?;
    let before = program.await_protected(shell)?;
    group.set(shell, "memory.high", &(48 * MIB).to_string())?;
    program.enter(shell)?;
    shell.until("it is slowed down", |shell| Ok((group.events(shell, "high")? > 20).then_some(())))?;
    // A death meanwhile, too.
    let pid = program.status(shell)?["pid"].clone();
    shell.ask(&format!("kill -9 {pid}"))?;
    program.await_event(shell, "recovered", 1)?;
    let after = program.await_protected(shell)?;
    expect(after["supervisor"] == before["supervisor"], || format!("another supervisor: {after}"))?;
    group.set(shell, "memory.high", "max")?;
    program.close(shell)?;
    let status = program.await_end(shell)?;
    expect(status == 0, || format!("status {status}"))?;
    program.expect_nothing_lost(shell, &hoard(WANTED, STEP))?;
    let (high, kills) = (group.events(shell, "high")?, program.count(shell, "oom-killed")?);
    expect(kills == 0, || format!("{kills} kills"))?;
    Ok(format!("slowed down {high} times, killed by hand and recovered meanwhile"))
}
