//! Filters of system calls (seccomp) that were there before outlast: those of a service manager or of a container. They stay, for us,
//! for the program and for the engine in it, and may end a process for a call that the program itself would never have made.
//!
//! So where there are any, what we and the engine need is tried beforehand ([`trial`]). What can be done without is done without; if
//! anything else is refused the program runs as if outlast were not there. What filters ask of arguments that are not known beforehand
//! (addresses, descriptors) no trial can tell.

mod trial;

use outlast_filter::needs::{wish, Need, CONNECTION, ENTRY, NEEDS, OUTSIDE, OUTSIDE_OR_OLDER, TEXT, UNFILTERED};
use outlast_filter::{Instruction, Question, Verdict};
use outlast_image::filters::HEAD_LEN;
use std::fmt;
use std::sync::OnceLock;
use trial::Tried;

/// A call that is needed, and refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    nr: u32,
    verdict: Verdict,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match outlast_calls::row(self.nr.into()) {
            Some(row) => f.write_str(row.name)?,
            None => write!(f, "system call {}", self.nr)?,
        }
        match self.verdict {
            Verdict::Errno(number) => write!(f, ", which fails with error {number}"),
            Verdict::Trap(_) => f.write_str(", which is answered by SIGSYS"),
            _ => f.write_str(", which ends the process"),
        }
    }
}

/// What was found out about the filters of this process.
#[derive(Default)]
struct Found {
    obstacle: Option<Refused>,
    /// Calls that end whoever makes them, or meet them with a signal, and that can be done without.
    deadly: Vec<Refused>,
    /// Whether a process may connect to us.
    may_connect: bool,
}

/// Tried once; nobody takes a filter off, and we install none.
fn found() -> &'static Found {
    static FOUND: OnceLock<Found> = OnceLock::new();
    FOUND.get_or_init(|| if exist() { find() } else { Found { may_connect: true, ..Found::default() } })
}

/// Are there any?
pub fn exist() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter_map(|line| line.strip_prefix("Seccomp:")).any(|mode| mode.trim() == "2")
}

/// What is needed, and refused: with this nothing can be protected.
pub fn obstacle() -> Option<Refused> {
    found().obstacle
}

/// May this process make the call? It may fail, as ever.
pub fn lets(nr: u32) -> bool {
    found().deadly.iter().all(|one| one.nr != nr)
}

/// What cannot be tried without harm, and is done without.
pub fn done_without() -> &'static [Refused] {
    &found().deadly
}

/// What the engine is told of them, as the beginning of [`outlast_image::filters::HandedOver`]: a filter that answers as they do where the
/// engine would try. None: there is nothing to tell.
pub fn handed_over() -> Option<Vec<u64>> {
    let Found { deadly, may_connect, .. } = found();
    if deadly.is_empty() && *may_connect {
        return None;
    }
    let filter = filter(deadly);
    let mut told = vec![0; HEAD_LEN / size_of::<u64>()];
    (told[0], told[1], told[2]) = (1, (*may_connect).into(), filter.len() as u64);
    told.extend(filter.into_iter().map(bytemuck::cast::<Instruction, u64>));
    Some(told)
}

fn filter(refused: &[Refused]) -> Vec<Instruction> {
    const LOAD_NUMBER: u16 = 0x20;
    const IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const TRAP: u32 = 0x0003_0000;
    const KILL_PROCESS: u32 = 0x8000_0000;
    let instruction = |code, jf, k| Instruction { code, jt: 0, jf, k };
    let mut filter = vec![instruction(LOAD_NUMBER, 0, 0)];
    for Refused { nr, verdict } in refused {
        let value = if let Verdict::Trap(data) = verdict { TRAP | u32::from(*data) } else { KILL_PROCESS };
        filter.extend([instruction(IF_EQUAL, 1, *nr), instruction(RETURN, 0, value)]);
    }
    filter.push(instruction(RETURN, 0, ALLOW));
    filter
}

/// What we can do without, each call for itself.
const WISHES: &[u32] = &[wish::BPF, wish::PIDFD_GETFD, wish::KCMP];

fn find() -> Found {
    let ask = |needs: &[&[Need]]| needs.concat().iter().flat_map(Need::questions).collect::<Vec<Question>>();
    let needed = ask(&[NEEDS, UNFILTERED, TEXT, ENTRY, OUTSIDE]);
    let or_older = ask(&[OUTSIDE_OR_OLDER]);
    let wished: Vec<Question> = wish::ALL.iter().chain(WISHES).map(|nr| Question::any(*nr)).collect();
    let connection = ask(&[CONNECTION]);
    let questions = [&needed[..], &or_older, &wished, &connection].concat();
    let verdicts = match trial::make(&questions) {
        Tried::All(verdicts) => verdicts,
        // That nobody may be traced is found out in other ways, and nothing has been done by then.
        Tried::NoTracing => return Found { may_connect: true, ..Found::default() },
        Tried::Refused(nr, verdict) => return Found { obstacle: Some(Refused { nr, verdict }), ..Found::default() },
    };
    let answers = questions.iter().zip(verdicts).map(|(question, verdict)| Refused { nr: question.nr, verdict });
    let answers: Vec<Refused> = answers.collect();
    let (needed, rest) = answers.split_at(needed.len());
    let (or_older, rest) = rest.split_at(or_older.len());
    let (wished, connection) = rest.split_at(wished.len());
    let is_refused = |one: &&Refused| one.verdict != Verdict::Allowed;
    let is_old = |one: &&Refused| one.verdict == Verdict::Errno(libc::ENOSYS as u16);
    let obstacle = needed.iter().find(is_refused).or(or_older.iter().find(|one| is_refused(one) && !is_old(one)));
    let is_deadly = |one: &&Refused| !matches!(one.verdict, Verdict::Allowed | Verdict::Errno(_));
    Found {
        obstacle: obstacle.copied(),
        deadly: wished.iter().filter(is_deadly).copied().collect(),
        may_connect: !connection.iter().any(|one| is_deadly(&one)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_told_what_was_found_out() {
        let refused = |nr, verdict| Refused { nr, verdict };
        let filter = filter(&[refused(425, Verdict::KillProcess), refused(323, Verdict::Trap(7))]);
        let says = |nr| outlast_filter::verdict(&filter, &Question::any(nr)).map(Verdict::of);
        assert_eq!(says(425), Some(Verdict::KillProcess));
        assert_eq!(says(323), Some(Verdict::Trap(7)));
        assert_eq!(says(1), Some(Verdict::Allowed));
    }

    #[test]
    fn a_refusal_names_the_call() {
        let text = |verdict| Refused { nr: 157, verdict }.to_string();
        assert_eq!(text(Verdict::Errno(1)), "prctl, which fails with error 1");
        assert_eq!(text(Verdict::KillProcess), "prctl, which ends the process");
    }
}
