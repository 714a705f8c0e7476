//! Somebody in its group takes all memory, again and again, and the whole group ends, at any moment of a program that never rests.

use super::group::Group;
use super::program::Program;
use super::{expect, Chance, Finding, User};
use crate::oracle;
use crate::shell::Shell;
use fastrand::Rng;

/// Lines that the program tells between two ends, at least; so many more at random.
const LINES: u32 = 30;
/// And while memory is taken, at most.
const MEANWHILE: u32 = 1500;
/// What the group may have, MiB: more than program and store need, less than the one who takes it wants.
const LIMIT: u64 = 128;

pub fn ends(shell: &mut Shell, user: User, chance: &Chance) -> Finding {
    let kills = chance.kills;
    let name = if user == User::Root { "storm-root" } else { "storm-user" };
    let mut random = Rng::with_seed(chance.seed);
    let group = Group::limited(shell, name, true, LIMIT)?;
    let lines = (kills * (2 * LINES + MEANWHILE)) as usize;
    let program = Program::start(shell, name, user, &group, "", &format!("/ledger {lines} 50"))?;
    let ledger = oracle::ledger(lines);
    let (mut told, mut ends) = (0, 0);
    let mut status = None;
    while ends < kills && status.is_none() {
        let until = told + (LINES + random.u32(..LINES)) as usize;
        let room = program.room();
        told = shell.until("more lines", |shell| {
            let count: usize = shell.ask(&format!("wc -l <{room}/told"))?.trim().parse()?;
            let is_over = shell.run(&format!("test -e {room}/status"))?.0 == 0;
            Ok((count >= until || is_over).then_some(count))
        })?;
        shell.ask(&format!("usleep {}", random.u32(..30_000)))?;
        let hoarder = group.begin(shell, "/hoard hold 400")?;
        shell.until("the end of who takes all memory", |shell| {
            Ok((shell.run(&format!("kill -0 {hoarder}"))?.0 != 0).then_some(()))
        })?;
        ends += 1;
        match user {
            User::Root => status = shell.run(&format!("cat {room}/status"))?.1.trim().parse().ok(),
            User::Ordinary => {
                let end = program.await_end(shell)?;
                if end == 0 {
                    status = Some(0);
                    break;
                }
                expect(end == 137, || format!("status {end} after {ends} ends"))?;
                program.resume(shell, &group)?;
            }
        }
    }
    let status = match status {
        Some(status) => status,
        None => program.await_end(shell)?,
    };
    let said = program.told(shell)?;
    let stretch = oracle::check(&ledger, 0, 0, said.as_bytes())?;
    expect(status == 0 && stretch.told == lines, || {
        format!("status {status} after {} of {lines} lines", stretch.told)
    })?;
    program.expect_nothing_lost(shell, &ledger.concat())?;
    let (recovered, resumed) = (program.count(shell, "recovered")?, program.count(shell, "resumed")?);
    expect(ends == kills, || format!("the program ended after {ends} of {kills} ends of its group"))?;
    Ok(format!("{ends} ends of the group, recovered {recovered} times, resumed {resumed} times, {lines} lines"))
}
