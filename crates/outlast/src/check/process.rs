//! A process that runs.

use super::file;
use super::finding::Finding;
use outlast_image::degradation::Degradation;
use outlast_image::layout::THREADS;
use outlast_supervisor::state_folder::StateFolder;
use outlast_supervisor::{attach, status, Error};
use rustix::io::Errno;
use std::fs;
use std::path::Path;

/// What is lost of a program under protection; `None` if the process is none of these.
pub fn protected(state: &StateFolder, pid: i32) -> Result<Option<Vec<Finding>>, Error> {
    let Some(program) = status::all(state)?.into_iter().find(|program| program.pids.contains(&pid)) else {
        return Ok(None);
    };
    let name = &program.name;
    let mut findings = vec![match program.protected {
        true => Finding::kept("protected", format!("{name} is protected, with {} commits so far", program.commits)),
        false => Finding::lost("protected", format!("{name} is not protected: it is {}", program.state), None),
    }];
    let lost = Degradation::ALL.iter().filter(|one| program.degradations.contains(&one.key()));
    findings.extend(lost.map(|one| Finding::degradation(*one)));
    Ok(Some(findings))
}

/// What would be lost of a process that is not under protection, and whether it can be put under it.
pub fn look(pid: i32) -> Result<Vec<Finding>, Error> {
    let folder = format!("/proc/{pid}");
    let folder = Path::new(&folder);
    if !folder.exists() {
        return Err(Error::File(folder.into(), Errno::SRCH));
    }
    let mut findings = vec![match attach::may_attach(pid) {
        Ok(()) => Finding::kept("attach", format!("`outlast attach {pid}` protects it as it runs")),
        Err(refusal) => Finding::lost("attach", refusal.to_string(), Some("what follows is about a program like it")),
    }];
    if let Ok(executable) = fs::read_link(folder.join("exe")) {
        findings.extend(file::look(executable.as_os_str()).unwrap_or_default());
    }
    let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
    if number(&status, "Threads:") > THREADS as u64 {
        findings.push(Finding::degradation(Degradation::Threads));
    }
    let children = fs::read_to_string(folder.join(format!("task/{pid}/children"))).unwrap_or_default();
    if !children.trim().is_empty() {
        findings.push(Finding::degradation(Degradation::Children));
    }
    let maps = fs::read_to_string(folder.join("maps")).unwrap_or_default();
    if maps.lines().any(is_shared_file) {
        findings.push(Finding::degradation(Degradation::SharedMapping));
    }
    findings.push(Finding::kept("memory", format!("{} MiB of its own", number(&status, "RssAnon:") >> 10)));
    Ok(findings)
}

/// The number behind a key of `/proc/PID/status`; 0 if it is not there.
fn number(status: &str, key: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// A line of `/proc/PID/maps`: a file that is written through shared memory?
fn is_shared_file(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (access, inode) = (words.nth(1).unwrap_or_default(), words.nth(2).unwrap_or("0"));
    access.as_bytes().get(1) == Some(&b'w') && access.ends_with('s') && inode != "0"
}
