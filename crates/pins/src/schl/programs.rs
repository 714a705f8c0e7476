//! Programs that outlast protects on this machine, whoever's they are, and which of their threads could run.

use libc::pid_t;
use outlast_interfaces::schl::Thread;
use outlast_supervisor::processes;
use std::fs::{read_dir, read_link};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often programs are looked for: at all processes.
const SEARCH: Duration = Duration::from_secs(5);
/// Each of the two may take no more than this part of the time.
const PART: u32 = 5000;

/// The processes of protected programs.
pub struct Programs {
    every: Duration,
    processes: Vec<pid_t>,
    /// When they are to be looked for, and looked at.
    due: [Duration; 2],
}

impl Programs {
    /// To be looked at so often, as a rule.
    pub fn new(every: Duration) -> Self {
        Self { every, processes: Vec::new(), due: [Duration::ZERO; 2] }
    }

    /// Their threads that could run, or do; none: it is not time yet.
    pub fn look(&mut self, at: Duration) -> Option<Vec<Thread>> {
        if at >= self.due[0] {
            let began = Instant::now();
            self.processes = children_of_supervisors();
            self.due[0] = at + SEARCH.max(began.elapsed() * PART);
        }
        (at >= self.due[1]).then(|| {
            let began = Instant::now();
            let threads = self.processes.iter().flat_map(|process| threads(*process)).collect();
            self.due[1] = at + self.every.max(began.elapsed() * PART);
            threads
        })
    }
}

fn children_of_supervisors() -> Vec<pid_t> {
    // One that was replaced by another outlast since says so in this way.
    let path = |link: PathBuf| link.to_string_lossy().trim_end_matches(" (deleted)").to_string();
    let Ok(own) = read_link("/proc/self/exe").map(path) else { return Vec::new() };
    let numbers = read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<pid_t>().ok());
    let runs_outlast = |pid: &pid_t| read_link(format!("/proc/{pid}/exe")).map(path).is_ok_and(|other| other == own);
    numbers.filter(runs_outlast).flat_map(processes::children_of).collect()
}

fn threads(process: pid_t) -> Vec<Thread> {
    let threads = processes::threads_of(process);
    threads.into_iter().filter_map(|thread| runnable(process, thread)).collect()
}

/// None: it waits for something, is stopped, frozen or gone.
fn runnable(process: pid_t, thread: pid_t) -> Option<Thread> {
    let stat = processes::line_of(format!("/proc/{process}/task/{thread}/stat"))?;
    let end = stat.rfind(')')?;
    let mut fields = stat[end + 1..].split_ascii_whitespace();
    if fields.next()? != "R" {
        return None;
    }
    let program = stat.get(stat.find('(')? + 1..end)?.to_string();
    // The processor is the 39th field, and the state was the third.
    let processor = fields.nth(35)?.parse().ok()?;
    let (ran, slices) = processes::schedule_of(process, thread)?;
    Some(Thread { program, process, thread, ran: Duration::from_nanos(ran), slices, processor })
}
