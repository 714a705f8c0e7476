//! Programs that outlast protects on this machine, whoever's they are, and which of their threads could run.

use libc::pid_t;
use outlast_interfaces::schl::Thread;
use outlast_supervisor::processes;
use std::fs::{read_dir, read_link, read_to_string};
use std::path::PathBuf;
use std::time::Duration;

/// So many looks the list of programs stays as it is: all processes have to be looked at for a new one.
const LOOKS: u32 = 5;

/// The processes of protected programs.
#[derive(Default)]
pub struct Programs {
    processes: Vec<pid_t>,
    looks: u32,
}

impl Programs {
    /// Their threads that could run, or do.
    pub fn look(&mut self) -> Vec<Thread> {
        if self.looks % LOOKS == 0 {
            self.processes = children_of_supervisors();
        }
        self.looks = self.looks.wrapping_add(1);
        self.processes.iter().flat_map(|process| threads(*process)).collect()
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
    // One thread that does not run is the rule.
    let threads = processes::threads_of(process);
    threads.into_iter().filter_map(|thread| runnable(process, thread)).collect()
}

/// None: it waits for something, is stopped, frozen or gone.
fn runnable(process: pid_t, thread: pid_t) -> Option<Thread> {
    let folder = format!("/proc/{process}/task/{thread}");
    let stat = read_to_string(format!("{folder}/stat")).ok()?;
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
