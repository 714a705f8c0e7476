//! The pin `ipc`.

use crate::desk::Shared;
use crate::file;
use outlast_core::{Event, Failure, Payload, Pin};
use outlast_interfaces::ipc::{self, Measured, Pipe, MOST, NAME};
use outlast_interfaces::pmc::Wait;
use outlast_interfaces::watch::Look;
use outlast_supervisor::decision::Process;
use outlast_supervisor::processes;
use rustix::fs::{fcntl_getfl, fstat, stat, FileType, OFlags};
use rustix::io::ioctl_fionread;
use rustix::pipe::fcntl_getpipe_size;

pub struct Ipc(pub Shared);

impl Pin for Ipc {
    fn operate(&mut self, operation: &'static str, argument: &Payload, _: &mut Vec<Event>) -> Result<Payload, Failure> {
        if operation == ipc::WATCH {
            return self.0.borrow_mut().watch(NAME, &argument.read()?).map(|()| Payload::NONE);
        }
        let process = self.0.borrow().process_of(NAME, &argument.read::<String>()?)?;
        Payload::of(&pipes(&process))
    }

    fn wanted(&mut self, _: &'static str, is_wanted: bool) {
        if !is_wanted {
            self.0.borrow_mut().sights.end(NAME);
        }
    }
}

pub fn measure(process: &Process, look: Look, waits: Vec<(i32, Wait)>) -> Measured {
    Measured { look, pipes: pipes(process), waits }
}

fn pipes(process: &Process) -> Vec<Pipe> {
    file::numbers(process).into_iter().filter_map(|number| pipe(process, number)).take(MOST).collect()
}

/// None: it is no pipe, or closed by now.
fn pipe(process: &Process, descriptor: i32) -> Option<Pipe> {
    // Copies are made of nothing else.
    let is_pipe = |mode| FileType::from_raw_mode(mode) == FileType::Fifo;
    is_pipe(stat(format!("/proc/{}/fd/{descriptor}", process.pid)).ok()?.st_mode).then_some(())?;
    let copy = processes::descriptor_of(process.pid, descriptor).ok()?;
    let status = fstat(&copy).ok()?;
    is_pipe(status.st_mode).then_some(())?;
    Some(Pipe {
        descriptor,
        inode: status.st_ino,
        writes: fcntl_getfl(&copy).ok()?.contains(OFlags::WRONLY),
        fill: ioctl_fionread(&copy).ok()? as u32,
        size: fcntl_getpipe_size(&copy).ok()? as u32,
    })
}
