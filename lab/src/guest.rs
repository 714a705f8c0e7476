//! A machine: QEMU without hardware help, so that it runs anywhere, killed where a machine would lose its power.

use crate::disk::Disk;
use crate::nbd;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// No boot takes so long.
const PATIENCE: Duration = Duration::from_secs(240);

/// What a machine boots.
pub struct Kernel {
    pub image: PathBuf,
    pub initramfs: PathBuf,
}

/// What a machine is made of.
pub struct Hardware {
    pub mebibytes: u32,
    pub processors: u32,
}

pub const PLAIN: Hardware = Hardware { mebibytes: 512, processors: 1 };

/// A machine that runs.
pub struct Guest {
    qemu: Child,
    /// To its second serial line.
    ear: ChildStdin,
    said: Arc<Mutex<Vec<u8>>>,
    times: Arc<Mutex<Vec<Instant>>>,
    console: PathBuf,
    threads: Vec<JoinHandle<()>>,
}

impl Guest {
    /// Boots. `room` is a folder for its files.
    pub fn boot(room: &Path, kernel: &Kernel, hardware: &Hardware, disk: &Arc<Mutex<Disk>>) -> io::Result<Guest> {
        let (socket, console) = (room.join("disk"), room.join("console"));
        for old in [&socket, &console] {
            let _ = fs::remove_file(old);
        }
        let listener = UnixListener::bind(&socket)?;
        let mut qemu = Command::new("qemu-system-x86_64");
        // 7.2, which Debian 12 has, computes wrong flags for cmpxchg16b, and has iretq in a program read as the kernel would.
        qemu.args(["-accel", "tcg", "-cpu", "max,-cx16,-smap", "-no-reboot", "-display", "none", "-nic", "none"]);
        qemu.args(["-m", &hardware.mebibytes.to_string(), "-smp", &hardware.processors.to_string()]);
        qemu.args(["-monitor", "none", "-vga", "none"])
            .arg("-kernel")
            .arg(&kernel.image)
            .arg("-initrd")
            .arg(&kernel.initramfs);
        qemu.args(["-append", "console=ttyS0 quiet panic=-1 rdinit=/init"]);
        qemu.arg("-serial").arg(format!("file:{}", console.display())).args(["-serial", "stdio"]);
        let drive = "if=none,id=disk,format=raw,cache=none,aio=threads,file=nbd:unix:";
        qemu.arg("-drive").arg(format!("{drive}{}", socket.display()));
        qemu.args([
            "-device",
            "virtio-blk-pci,drive=disk,write-cache=on,logical_block_size=4096,physical_block_size=4096",
        ]);
        let mut qemu = qemu.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let ear = qemu.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let disk = Arc::clone(disk);
        let server = std::thread::spawn(move || {
            // An end in the middle is the power's.
            let _ = listener.accept().and_then(|(stream, _)| nbd::serve(stream, &disk));
        });
        let said = Arc::new(Mutex::new(Vec::new()));
        let times = Arc::new(Mutex::new(Vec::new()));
        let listener = {
            let times = Arc::clone(&times);
            let (said, mut from) = (Arc::clone(&said), qemu.stdout.take());
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Some(n @ 1..) = from.as_mut().and_then(|from| from.read(&mut bytes).ok()) {
                    let lines = bytes[..n].iter().filter(|byte| **byte == b'\n').count();
                    times.lock().unwrap_or_else(PoisonError::into_inner).extend(vec![Instant::now(); lines]);
                    said.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&bytes[..n]);
                }
            })
        };
        Ok(Guest { qemu, ear, said, times, console, threads: vec![server, listener] })
    }

    /// How many lines the program has told so far.
    pub fn lines(&self) -> usize {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).iter().filter(|byte| **byte == b'\n').count()
    }

    /// When each of them was told.
    pub fn times(&self) -> Arc<Mutex<Vec<Instant>>> {
        Arc::clone(&self.times)
    }

    /// Waits until the program has told so many lines, or the machine is off; true: it is off.
    pub fn await_lines(&mut self, lines: usize) -> io::Result<bool> {
        self.await_that(|guest| guest.lines() >= lines)
    }

    /// Waits until something is so, or the machine is off; true: it is off.
    pub fn await_that(&mut self, is_so: impl Fn(&Guest) -> bool) -> io::Result<bool> {
        let begun = Instant::now();
        while !is_so(self) {
            if self.qemu.try_wait()?.is_some() {
                return Ok(true);
            }
            if begun.elapsed() > PATIENCE {
                let said = format!("nothing more for {PATIENCE:?}; the console: {}", self.console());
                self.qemu.kill()?;
                return Err(io::Error::new(io::ErrorKind::TimedOut, said));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(false)
    }

    /// Whether it has been switched off.
    pub fn is_off(&mut self) -> io::Result<bool> {
        Ok(self.qemu.try_wait()?.is_some())
    }

    /// Tells something on the second serial line.
    pub fn tell(&mut self, text: &str) -> io::Result<()> {
        self.ear.write_all(text.as_bytes())
    }

    /// What was said there from this byte on.
    pub fn said(&self, from: usize) -> Vec<u8> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).get(from..).unwrap_or_default().to_vec()
    }

    /// Takes the power away; gives what the program told.
    pub fn lose_power(mut self) -> io::Result<Vec<u8>> {
        self.qemu.kill()?;
        self.end()
    }

    /// What the program told until the machine was off.
    pub fn end(mut self) -> io::Result<Vec<u8>> {
        self.qemu.wait()?;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        Ok(std::mem::take(&mut self.said.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// What kernel and first process said.
    pub fn console(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.console).unwrap_or_default()).into_owned()
    }
}

/// A machine that nobody watches any more is switched off.
impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}
