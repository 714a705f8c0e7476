//! A program whose group has too little for it: with more it goes on, whoever is killed with it.

use super::group::Group;
use super::program::{hoard, Program};
use super::{exempt, expect, Finding, User};
use crate::shell::Shell;
use serde_json::Value;
use std::error::Error;

/// What the program wants of memory for itself, what there is, and what is enough for it and its store; MiB.
const WANTED: u32 = 96;
const SCARCE: u64 = 80;
const ENOUGH: u64 = 400;
const STEP: u32 = 8;

/// In a group, beside somebody who needs next to nothing.
struct Shortage {
    group: Group,
    program: Program,
    bystander: i64,
    /// What `ps` said in the beginning.
    before: Value,
}

fn begin(shell: &mut Shell, name: &str, whole: bool) -> Result<Shortage, Box<dyn Error>> {
    let name = format!("{name}-{}", if whole { "group" } else { "alone" });
    let group = Group::limited(shell, &name, whole, SCARCE)?;
    let bystander = group.begin(shell, "sleep 1000000")?;
    let program = Program::start(shell, &name, User::Root, &group, "", &format!("/hoard {WANTED} {STEP}"))?;
    let before = exempt::await_exempt(shell, &program)?;
    program.enter(shell)?;
    program.close(shell)?;
    Ok(Shortage { group, program, bystander, before })
}

impl Shortage {
    /// Whom the kernel says to have killed, and whom it did not.
    fn look_at_the_dead(&self, shell: &mut Shell, whole: bool) -> Result<u64, Box<dyn Error>> {
        let kills = self.group.events(shell, "oom_kill")?;
        let ends = self.group.events(shell, "oom_group_kill")?;
        let told = self.program.count(shell, "oom-killed")? as u64;
        expect(kills >= told && (ends >= told) == whole && (ends > 0) == whole, || {
            format!("{kills} kills, {ends} ends of the group; the log has {told}")
        })?;
        let lives = shell.run(&format!("kill -0 {}", self.bystander))?.0 == 0;
        expect(lives != whole, || format!("the bystander lives: {lives}"))?;
        Ok(told)
    }

    /// None of ours was killed.
    fn look_at_the_exempt(&self, shell: &mut Shell) -> Result<(), Box<dyn Error>> {
        for who in ["supervisor", "anchor"] {
            let lives = shell.run(&format!("kill -0 {}", self.before[who]))?.0 == 0;
            expect(lives, || format!("the {who} is dead"))?;
        }
        Ok(())
    }

    fn end(self, shell: &mut Shell) -> Result<(), Box<dyn Error>> {
        self.program.expect_nothing_lost(shell, &hoard(WANTED, STEP))?;
        shell.run(&format!("kill {}", self.bystander)).map(drop)
    }
}

/// Nobody helps: it is given up, and resumed with more.
pub fn given_up(shell: &mut Shell, whole: bool) -> Finding {
    let shortage = begin(shell, "given-up", whole)?;
    let program = &shortage.program;
    let status = program.await_end(shell)?;
    let complaints = program.complaints(shell)?;
    expect(status == 137, || format!("status {status}: {complaints}"))?;
    let said = complaints.contains("lack of memory")
        && complaints.contains(shortage.group.path().rsplit('/').next().unwrap_or("?"));
    expect(said, || format!("it said {complaints:?}"))?;
    let told = shortage.look_at_the_dead(shell, whole)?;
    expect(told >= 9, || format!("given up after {told} kills"))?;
    let ends = program.count(shell, "gave-up")?;
    let state = program.status(shell)?["state"].clone();
    expect(ends == 1 && state == "resumable", || format!("given up {ends} times, {state}"))?;

    shortage.group.allow(shell, ENOUGH)?;
    program.resume(shell, &shortage.group)?;
    let status = program.await_end(shell)?;
    expect(status == 0, || format!("resumed, then status {status}"))?;
    shortage.end(shell)?;
    Ok(format!("killed {told} times, given up, and went on with more memory"))
}

/// The limit is raised while the program waits for memory.
pub fn raised(shell: &mut Shell, whole: bool) -> Finding {
    let shortage = begin(shell, "raised", whole)?;
    let program = &shortage.program;
    program.await_event(shell, "oom-killed", 3)?;
    shortage.look_at_the_exempt(shell)?;
    shortage.group.allow(shell, ENOUGH)?;
    let status = program.await_end(shell)?;
    expect(status == 0, || format!("status {status}"))?;
    let told = shortage.look_at_the_dead(shell, whole)?;
    let (resumed, anchors) = (program.count(shell, "resumed")?, program.count(shell, "anchor-renewed")?);
    expect(resumed == 0 && anchors == 0, || format!("resumed {resumed} times, {anchors} new anchors"))?;
    shortage.end(shell)?;
    Ok(format!("killed {told} times, and went on when there was more memory"))
}
