//! Programs that are trees of processes, which are killed again and again.

use super::{finish, said, Home};
use outlast_image::control::Control;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A user that is not root.
pub const NOBODY: u32 = 65534;

/// How long a tree that is killed again and again may take, and after how many kills it is let be: what dies faster than it goes on never
/// ends, and on a busy machine a recovery can take longer than the pause between two kills.
const PATIENCE: Duration = Duration::from_secs(240);
const MOST_KILLS: u32 = 1500;

/// In so many times the rounds that are wanted there must have been enough kills.
const MOST_ROUNDS: u64 = 20;

/// A pipeline whose two sides are shells, one of which starts a program for each line.
pub const PIPELINE: &str = "i=0; while [ $i -lt 40 ]; do echo \"line $i $(expr $i \\* 3)\"; i=$((i+1)); done |
    while read a b c; do echo \"$a:$b:$c\"; done
(exit 5); echo status $?";

/// The command as a tree of this name.
pub fn start(home: &Home, name: &str, command: &[&str]) -> Child {
    let mut outlast = home.outlast(["run", "--tree", "--name", name, "--"]);
    outlast.args(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What the command shows and returns without outlast.
pub fn native(command: &[&str]) -> Output {
    Command::new(command[0]).args(&command[1..]).stdin(Stdio::null()).output().unwrap()
}

/// The process of which a session is, if it has one.
fn program_of(session: &Path) -> Option<i32> {
    pid_at(session, offset_of!(Control, program_pid))
}

/// A number of a process in a session.
pub fn pid_at(session: &Path, offset: usize) -> Option<i32> {
    let mut pid = [0; 4];
    let file = std::fs::File::open(session).ok()?;
    file.read_exact_at(&mut pid, offset as u64).ok()?;
    Some(i32::from_ne_bytes(pid)).filter(|pid| *pid > 0)
}

/// The sessions of a tree's children, the youngest last.
pub fn sessions(home: &Home, name: &str) -> Vec<PathBuf> {
    let folder = home.state().join(name);
    let number = |file: &str| file.strip_prefix("child.")?.parse::<u32>().ok();
    let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut children: Vec<u32> =
        files.filter_map(|file| number(file.file_name().to_str().unwrap_or_default())).collect();
    children.sort_unstable();
    children.iter().map(|number| folder.join(format!("child.{number}/session"))).collect()
}

/// The programs of a tree, the one that it began with first, the youngest last.
pub fn programs(home: &Home, name: &str) -> Vec<i32> {
    let first = home.state().join(name).join("session");
    std::iter::once(first).chain(sessions(home, name)).filter_map(|session| program_of(&session)).collect()
}

/// Kills a program of the test's. False: it has gone.
pub fn kill(pid: i32) -> bool {
    // SAFETY: plain system call. The number was a process of the test's own just now.
    unsafe { libc::kill(pid, libc::SIGKILL) == 0 }
}

/// Any of them.
pub fn any(random: &mut fastrand::Rng, there: &[i32]) -> Option<i32> {
    random.choice(there).copied()
}

/// The one that was born last, but not the first of all: who needs longer than it lives never comes to its next commit.
pub fn youngest(_: &mut fastrand::Rng, there: &[i32]) -> Option<i32> {
    there.get(1..)?.last().copied()
}

/// Kills one of the tree's programs, which `choose` chooses, again and again until the tree has ended; how often.
pub fn harass(
    home: &Home,
    name: &str,
    child: &mut Child,
    seed: u64,
    pause_us: u64,
    choose: fn(&mut fastrand::Rng, &[i32]) -> Option<i32>,
) -> u32 {
    harass_until(home, name, (seed, pause_us), choose, |_| child.try_wait().unwrap().is_some())
}

/// The same until something is over, which may depend on the kills so far. With a pause of so many microseconds on average.
pub fn harass_until(
    home: &Home,
    name: &str,
    (seed, pause_us): (u64, u64),
    choose: fn(&mut fastrand::Rng, &[i32]) -> Option<i32>,
    mut is_over: impl FnMut(u32) -> bool,
) -> u32 {
    let (mut random, mut kills) = (fastrand::Rng::with_seed(seed), 0);
    let begun = Instant::now();
    while !is_over(kills) {
        assert!(begun.elapsed() < PATIENCE, "seed {seed}, {kills} kills: it does not end: {:#?}", home.log(name));
        std::thread::sleep(Duration::from_micros(random.u64(..2 * pause_us)));
        if kills >= MOST_KILLS {
            continue;
        }
        if let Some(chosen) = choose(&mut random, &programs(home, name)) {
            kills += u32::from(kill(chosen));
        }
    }
    kills
}

/// How a tree is killed again and again: once for each of so many seeds, and then for further ones until there were so many kills: how long a
/// program lives, and so how often it is met, depends on the machine.
pub struct Harassment {
    pub seeds: u64,
    pub kills: u32,
    pub pause_us: u64,
    pub choose: fn(&mut fastrand::Rng, &[i32]) -> Option<i32>,
}

/// Whatever becomes of its programs, the command shows what it shows without outlast.
pub fn outlasts(home: &Home, command: &[&str], how: &Harassment) {
    let (wanted, mut kills) = (native(command), 0);
    for seed in 0.. {
        if seed >= how.seeds && kills >= how.kills {
            return;
        }
        assert!(seed < how.seeds * MOST_ROUNDS, "{kills} kills in {seed} rounds, {} are wanted", how.kills);
        let name = format!("seed-{seed}");
        let mut child = start(home, &name, command);
        kills += harass(home, &name, &mut child, seed, how.pause_us, how.choose);
        assert_same(&finish(child), &wanted, &format!("seed {seed}: {:#?}", home.log(&name)));
        assert_no_error(home, &name);
    }
}

/// Nothing but kills was the end of any process.
pub fn assert_no_error(home: &Home, name: &str) {
    assert!(!home.events(name).contains(&"engine-error".into()), "{:#?}", home.log(name));
}

/// Both show the same, and end alike.
pub fn assert_same(output: &Output, wanted: &Output, what: &str) {
    assert_eq!(said(output), said(wanted), "{what}");
    assert_eq!(
        (output.status, &output.stdout, &output.stderr),
        (wanted.status, &wanted.stdout, &wanted.stderr),
        "{what}"
    );
}
