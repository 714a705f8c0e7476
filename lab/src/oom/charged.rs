//! To whom a store is charged, and what the kernel may take back of it.

use super::group::Group;
use super::program::{hoard, Program};
use super::{expect, Finding, User, MIB};
use crate::shell::Shell;
use serde_json::Value;
use std::error::Error;

/// Private memory of the program, MiB.
const WANTED: u32 = 64;
const OWN: u64 = WANTED as u64;
const STEP: u32 = 8;
/// What a store may have besides a program's memory.
const RING: u64 = 64;
/// What everything else may take: the program's libraries, session, engine, supervisor and anchor.
const REST: u64 = 24;
/// What the program has, and some of what is charged besides: too little for a store as well.
const TIGHT: u64 = OWN + 56;

/// Memory of a group, MiB: private, in memory files, in files of a disk.
#[derive(Debug)]
struct Use {
    private: u64,
    shared: u64,
    disk: u64,
}

impl Use {
    fn of(shell: &mut Shell, group: &Group) -> Result<Use, Box<dyn Error>> {
        let (file, shared) = (group.stat(shell, "file")?, group.stat(shell, "shmem")?);
        Ok(Use { private: group.stat(shell, "anon")?, shared, disk: file - shared })
    }
}

/// A program that has all its memory.
fn full(shell: &mut Shell, name: &str, options: &str) -> Result<(Group, Program, Value), Box<dyn Error>> {
    let group = Group::new(shell, name, false)?;
    let program = Program::start(shell, name, User::Root, &group, options, &format!("/hoard {WANTED} {STEP}"))?;
    program.enter(shell)?;
    program.await_told(shell, "full")?;
    let status = program.await_protected(shell)?;
    Ok((group, program, status))
}

fn is_about(found: u64, wanted: u64, more: u64) -> bool {
    (wanted..=wanted + more).contains(&found)
}

/// Private memory of a process, MiB.
fn private(shell: &mut Shell, pid: &Value) -> Result<u64, Box<dyn Error>> {
    let said = shell.ask(&format!("grep RssAnon: /proc/{pid}/status"))?;
    let figure = said.split_whitespace().nth(1).ok_or("no RssAnon")?.parse::<u64>()?;
    Ok(figure * 1024 / MIB)
}

pub fn in_memory(shell: &mut Shell) -> Finding {
    let (group, program, status) = full(shell, "in-memory", "")?;
    let before = Use::of(shell, &group)?;
    let is_so = is_about(before.private, OWN, REST) && is_about(before.shared, OWN, RING + REST) && before.disk < REST;
    expect(is_so && before.private + before.shared > TIGHT, || format!("{before:?}"))?;
    for who in ["supervisor", "anchor"] {
        let own = private(shell, &status[who])?;
        expect(own < 8, || format!("the {who} has {own} MiB of its own"))?;
    }
    // Of what it only reads a recovered program uses the store's pages.
    shell.ask(&format!("kill -9 {}", status["pid"]))?;
    program.await_event(shell, "recovered", 1)?;
    program.close(shell)?;
    let after = shell.until("it has looked at all its memory", |shell| {
        let during = Use::of(shell, &group)?;
        expect(during.private < OWN / 2, || format!("recovered: {during:?}"))?;
        Ok(program.told(shell)?.ends_with("right\n").then_some(during))
    })?;
    let end = program.await_end(shell)?;
    expect(end == 0, || format!("status {end}"))?;
    program.expect_nothing_lost(shell, &hoard(WANTED, STEP))?;
    let left = shell.until("the store is gone", |shell| {
        let left = group.stat(shell, "shmem")?;
        Ok((left < 8).then_some(left))
    })?;
    Ok(format!("{OWN} MiB of a program: {before:?}; recovered: {after:?}; ended: {left} MiB"))
}

pub fn on_a_disk(shell: &mut Shell) -> Finding {
    let (group, program, _) = full(shell, "on-disk", "--store /disk")?;
    let before = Use::of(shell, &group)?;
    let is_so = is_about(before.private, OWN, REST) && before.shared < REST && is_about(before.disk, OWN, RING + REST);
    expect(is_so, || format!("{before:?}"))?;
    // The kernel makes room, of what is on the disk by now: when a limit falls it does not wait for the rest.
    shell.ask("sync")?;
    group.allow(shell, TIGHT)?;
    let after = Use::of(shell, &group)?;
    program.close(shell)?;
    let end = program.await_end(shell)?;
    let kills = group.events(shell, "oom_kill")?;
    expect(end == 0 && kills == 0, || format!("status {end}, {kills} kills"))?;
    program.expect_nothing_lost(shell, &hoard(WANTED, STEP))?;

    // And from the beginning. A slow disk may be too slow, which costs time and nothing else.
    let group = Group::limited(shell, "on-disk-tight", false, TIGHT)?;
    let hoard_all = format!("/hoard {WANTED} {STEP}");
    let program = Program::start(shell, "on-disk-tight", User::Root, &group, "--store /disk", &hoard_all)?;
    program.enter(shell)?;
    program.close(shell)?;
    let end = program.await_end(shell)?;
    expect(end == 0, || format!("from the beginning: status {end}"))?;
    let kills = group.events(shell, "oom_kill")?;
    program.expect_nothing_lost(shell, &hoard(WANTED, STEP))?;
    Ok(format!(
        "{OWN} MiB of a program: {before:?}; in {TIGHT} MiB: {after:?}; there from the beginning: {kills} kills"
    ))
}
