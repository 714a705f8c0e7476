//! Memory beside the program: store, session, engine, anchor and supervisor.

use crate::failure::{Failure, Outcome, Tried};
use crate::launch::{Launch, Side, Streams};
use crate::measurement::{Collected, Measurement};
use crate::pipe;
use crate::promise::{Promise, Relation, Unit};
use crate::user::User;
use crate::workshop::Workshop;
use outlast_image::layout::{ENGINE_BASE, ENGINE_END, STORE_BASE};
use rustix::process::Pid;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::sync::atomic::Ordering::Acquire;

/// A size of process.
pub struct Memory {
    pub megabytes: u32,
}

const MIB: f64 = 1048576.0;
/// Commits before the program is looked at.
const COMMITS: &str = "1000";
/// Of the program's private memory, what may be needed for each byte.
const SHARE: f64 = 1.1;

impl Measurement for Memory {
    fn name(&self) -> String {
        format!("memory beside {} MB", self.megabytes)
    }

    fn promises(&self) -> Vec<Promise> {
        let what = format!("memory beside a program of {} MB, less 1.1 × its private memory", self.megabytes);
        let id = format!("memory-{}mb", self.megabytes);
        vec![Promise { id, what, unit: Unit::Mebibytes, relation: Relation::Whole, limit: 8.0 }]
    }

    fn rounds(&self) -> usize {
        3
    }

    fn round(&mut self, _: usize, workshop: &Workshop, collected: &mut Collected) -> Outcome<()> {
        let ready = workshop.work(User::Own).join("ready");
        // Left by the run before.
        let _ = fs::remove_file(&ready);
        let (_reader, output) = pipe::roomy()?;
        let size = self.megabytes.to_string();
        let argv = [workshop.executable("hold").into(), ready.clone().into(), size.into(), COMMITS.into()].into();
        let launch = Launch { workshop, user: User::Own, side: Side::Protected(&[]), argv };
        let mut running = launch.start(Streams { input: Stdio::null(), output, errors: Stdio::piped() })?;
        running.wait_for_file(&ready)?;
        collected.conditions(&running.conditions()?);
        let folder = running.folder().to_path_buf();
        let anchor = Pid::from_raw(running.session()?.control().anchor_pid.load(Acquire));
        let program = Mapped::of(running.program_pid()?)?;
        let anchor = anchor.map_or(Ok(Private::default()), Private::of)?;
        let supervisor = Private::of(running.outer_pid())?;
        let parts = [
            ("store", room(&folder.join("store"))?),
            ("session", room(&folder.join("session"))?),
            ("engine", program.engine),
            ("anchor", anchor.written + anchor.file),
            ("supervisor", supervisor.written),
            ("its executable, as far as it is the only one to run it", supervisor.file),
        ];
        let beside: f64 = parts.iter().map(|(_, bytes)| bytes).sum();
        collected.add(&self.promises()[0].id, None, (beside - SHARE * program.private) / MIB);
        let parts = parts.map(|(name, bytes)| format!("{name} {:.1}", bytes / MIB)).join(", ");
        let total = [program.private, beside].map(|bytes| bytes / MIB);
        collected.note_once(
            "private memory",
            format!("private memory {:.1} MiB; beside it {:.1}: {parts}", total[0], total[1]),
        );
        Ok(())
    }
}

/// Bytes that a file takes.
fn room(path: &std::path::Path) -> Outcome<f64> {
    Ok(fs::metadata(path).tried_on(path)?.blocks() as f64 * 512.0)
}

/// Bytes that only one process has.
#[derive(Default)]
struct Private {
    written: f64,
    /// Of files as they are: shared by all who have them mapped, and the kernel's to take away.
    file: f64,
}

impl Private {
    fn of(pid: Pid) -> Outcome<Self> {
        let path = format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero());
        let text = fs::read_to_string(&path).tried_on(path)?;
        let sum = |start: &str| text.lines().filter(|line| line.starts_with(start)).filter_map(kilobytes).sum::<f64>();
        let written = sum("Anonymous:");
        Ok(Self { written, file: (sum("Private_") - written).max(0.0) })
    }
}

/// What a protected process has mapped, in bytes.
#[derive(Default)]
struct Mapped {
    /// Anonymous memory of the program.
    private: f64,
    /// Resident memory of the engine, the store's and the session's files not counted.
    engine: f64,
}

impl Mapped {
    fn of(pid: Pid) -> Outcome<Self> {
        let path = format!("/proc/{}/smaps", pid.as_raw_nonzero());
        let text = fs::read_to_string(&path).tried_on(&path)?;
        let (mut mapped, mut start) = (Self::default(), 0);
        for line in text.lines() {
            if let Some(first) = line.split_once('-').and_then(|(start, _)| u64::from_str_radix(start, 16).ok()) {
                start = first;
                continue;
            }
            let Some(bytes) = line.strip_prefix("Anonymous:").and_then(kilobytes) else { continue };
            match start {
                ENGINE_BASE..STORE_BASE => mapped.engine += bytes,
                STORE_BASE..ENGINE_END => {}
                _ => mapped.private += bytes,
            }
        }
        match mapped.private > 0.0 {
            true => Ok(mapped),
            false => Err(Failure::Unreadable(path, text)),
        }
    }
}

/// Bytes of a line that ends with a number and kB.
fn kilobytes(line: &str) -> Option<f64> {
    let number = line.trim().strip_suffix(" kB")?.rsplit(' ').next()?.parse::<f64>().ok()?;
    Some(number * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_smaps_is_read_in_bytes() {
        assert_eq!(kilobytes("Private_Dirty:        12 kB"), Some(12288.0));
        assert_eq!(kilobytes("VmFlags: rd wr"), None);
    }
}
