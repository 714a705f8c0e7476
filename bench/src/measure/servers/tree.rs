//! All processes of a server, and of its protection.

use crate::cpu;
use crate::failure::{Failure, Outcome};
use crate::launch::Side;
use crate::running::{Running, LIMIT};
use outlast_image::control::Control;
use rustix::process::{kill_process, kill_process_group, Pid, Signal};
use std::fs::{read_dir, read_to_string, File};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PULSE: Duration = Duration::from_millis(2);

pub struct Tree {
    outer: Pid,
    /// The program's in outlast's state; empty: it is not protected.
    folder: PathBuf,
}

impl Tree {
    pub fn of(running: &Running) -> Self {
        Self { outer: running.outer_pid(), folder: running.folder().into() }
    }

    /// The process that was started, and all that descend from it.
    fn all(&self) -> Vec<Pid> {
        let mut all = vec![self.outer];
        let mut next = 0;
        while let Some(pid) = all.get(next) {
            let threads = read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).into_iter().flatten().flatten();
            let children: String =
                threads.filter_map(|thread| read_to_string(thread.path().join("children")).ok()).collect();
            all.extend(children.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)));
            next += 1;
        }
        all
    }

    /// Those of the protected program, without what belongs to the protection.
    fn programs(&self) -> Vec<Pid> {
        let files = read_dir(&self.folder).into_iter().flatten().flatten();
        let is_child =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"child."));
        let folders = files.map(|file| file.path()).filter(is_child).chain([self.folder.clone()]);
        folders.filter_map(|folder| program_of(&folder.join("session"))).collect()
    }

    /// Waits until it has so many.
    pub fn await_programs(&self, count: usize, side: Side) -> Outcome<()> {
        let began = Instant::now();
        loop {
            let there = if side == Side::Native { self.all() } else { self.programs() };
            if there.len() >= count {
                return Ok(());
            }
            if began.elapsed() > LIMIT {
                return Err(Failure::TooLong("the start of all processes".into(), LIMIT.as_secs()));
            }
            sleep(PULSE);
        }
    }

    /// What all have used so far.
    pub fn processor_time(&self) -> Duration {
        self.all().into_iter().map(cpu::used).sum()
    }

    /// Kills one of the programs, whichever, again and again until `is_over`; how often.
    pub fn kill_each(&self, pause: Duration, seed: u64, is_over: &AtomicBool) -> usize {
        let (mut random, mut kills) = (fastrand::Rng::with_seed(seed), 0);
        loop {
            let until = Instant::now() + pause;
            while Instant::now() < until {
                if is_over.load(Relaxed) {
                    return kills;
                }
                sleep(PULSE);
            }
            let chosen = random.choice(self.programs());
            kills += usize::from(chosen.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok()));
        }
    }

    /// Ends what was not ended as it should: the watcher first, which would bring back the others.
    pub fn end(&self) {
        let all = self.all();
        // Gone already is as good.
        let _ = kill_process_group(self.outer, Signal::KILL);
        for pid in all {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn program_of(session: &Path) -> Option<Pid> {
    let mut pid = [0; 4];
    let file = File::open(session).ok()?;
    file.read_exact_at(&mut pid, offset_of!(Control, program_pid) as u64).ok()?;
    Pid::from_raw(i32::from_ne_bytes(pid)).filter(|pid| pid.as_raw_nonzero().get() > 0)
}
