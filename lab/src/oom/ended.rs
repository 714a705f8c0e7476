//! Nobody may be exempt: program, anchor and supervisor end with the group, and the store is what is left.

use super::group::Group;
use super::program::{hoard, Program};
use super::{expect, Finding, User};
use crate::shell::Shell;

/// What the program wants of memory for itself, what there is, and what is enough; MiB.
const WANTED: u32 = 96;
const SCARCE: u64 = 80;
const ENOUGH: u64 = 400;
const STEP: u32 = 8;
/// Times that it is resumed in vain: then as now there is too little.
const IN_VAIN: u32 = 2;

pub fn all(shell: &mut Shell) -> Finding {
    let group = Group::limited(shell, "ended", true, SCARCE)?;
    let program = Program::start(shell, "ended", User::Ordinary, &group, "", &format!("/hoard {WANTED} {STEP}"))?;
    let before = program.await_protected(shell)?;
    for who in ["supervisor", "anchor", "pid"] {
        let score = shell.ask(&format!("cat /proc/{}/oom_score_adj", before[who]))?;
        expect(score.trim() == "0", || format!("the {who} has an OOM score of {score}"))?;
    }
    program.enter(shell)?;
    program.close(shell)?;
    let expected = hoard(WANTED, STEP);
    for n in 0..=IN_VAIN {
        let status = program.await_end(shell)?;
        expect(status == 137, || format!("after {n} times status {status}"))?;
        let left = shell.until("the end of everybody in the group", |shell| {
            let members = group.members(shell)?;
            Ok(members.is_empty().then_some(()))
        });
        left?;
        let ends = group.events(shell, "oom_group_kill")?;
        expect(ends > u64::from(n), || format!("{ends} ends of the group, not {}", n + 1))?;
        let (state, told) = (program.status(shell)?["state"].clone(), program.told(shell)?);
        expect(state == "resumable", || format!("it is {state}"))?;
        expect(expected.starts_with(&told), || format!("it told {told:?}"))?;
        if n == IN_VAIN {
            group.allow(shell, ENOUGH)?;
        }
        program.resume(shell, &group)?;
    }
    let status = program.await_end(shell)?;
    expect(status == 0, || format!("with more memory status {status}"))?;
    program.expect_nothing_lost(shell, &expected)?;
    Ok(format!("ended {} times with the whole group, resumed as often, and went on with more memory", IN_VAIN + 1))
}
