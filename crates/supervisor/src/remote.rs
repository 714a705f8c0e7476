//! System calls made on behalf of a process that is stopped: before its first instruction, or anywhere.

use crate::bootstrap::{self, Call};
use crate::trace::{self, Fault};
use libc::{iovec, pid_t, user_regs_struct};
use rustix::io::Errno;
use std::ffi::{CStr, CString};

/// Bytes below the stack pointer that hold the table; the kernel has mapped more than that at an exec.
const SCRATCH: usize = 4096;
/// Bytes of it, at its start, for what the calls point to.
const DATA: usize = 1024;
/// How many calls a batch holds at most.
pub const CALLS: usize = (SCRATCH - DATA) / std::mem::size_of::<Call>() - 1;

/// System calls to be made one after the other, up to the first that fails.
#[derive(Default)]
pub struct Batch {
    calls: Vec<Call>,
    data: Vec<u8>,
    base: u64,
}

impl Batch {
    /// Puts bytes where the calls can point to, 8-byte aligned, and returns their address in the process.
    pub fn data(&mut self, bytes: &[u8]) -> u64 {
        let at = self.data.len();
        self.data.extend_from_slice(bytes);
        self.data.resize(self.data.len().next_multiple_of(8), 0);
        assert!(self.data.len() <= DATA, "a batch's data fits its room");
        self.base + at as u64
    }

    pub fn call(&mut self, number: i64, args: &[u64]) -> &mut Call {
        assert!(self.calls.len() < CALLS && args.len() <= 6, "a batch fits its room");
        let mut call = Call { number, ..Call::default() };
        call.args[..args.len()].copy_from_slice(args);
        self.calls.push(call);
        self.calls.last_mut().expect("one was pushed")
    }

    /// The content of data after the batch ran.
    pub fn word(&self, address: u64) -> i32 {
        let at = (address - self.base) as usize;
        i32::from_ne_bytes(self.data[at..at + 4].try_into().expect("four bytes"))
    }

    /// The calls with their results; those after a failed one were not made.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }
}

/// A stopped process whose next instructions are, for the moment, ours.
pub struct Remote {
    pub(crate) pid: pid_t,
    /// Registers at the stop.
    regs: user_regs_struct,
    ground: Ground,
    /// Where the instructions lie.
    code: u64,
    scratch: u64,
    mask: u64,
    /// Signals that arrived meanwhile and are sent again at the end.
    deferred: Vec<i32>,
}

/// What instructions and table lie in.
pub(crate) enum Ground {
    /// The program's text at the stop, which was this, and unused stack: nothing of the program has run.
    Program { text: Vec<u8> },
    /// Pages that were mapped for them, by the `syscall` instruction at this address.
    Own { instruction: u64 },
}

/// As many as fit below the kernel's limit of 6 MiB for all arguments, one byte and its NUL each.
const MOST_WORDS: u64 = 3 << 20;

/// Where a process has come to that was let go on.
enum At {
    /// The end of the table.
    Breakpoint,
    /// The beginning of another program.
    Exec,
}

/// Selector of 64-bit user code.
const USER_CS: u64 = 0x33;

impl Remote {
    /// Takes over a process at an exec stop; `None` if it runs 32-bit code: then it was let go.
    pub fn enter(pid: pid_t) -> Result<Option<Self>, Fault> {
        let regs = trace::registers(pid).map_err(|e| Fault::Kernel("read its registers", e))?;
        if regs.cs != USER_CS {
            trace::detach(pid, 0).map_err(|e| Fault::Kernel("detach", e))?;
            return Ok(None);
        }
        let mask = trace::signal_mask(pid).map_err(|e| Fault::Kernel("read its signal mask", e))?;
        let scratch = (regs.rsp - 256 - SCRATCH as u64) & !63;
        let mut text = vec![0; bootstrap::code().len()];
        read_memory(pid, regs.rip, &mut text).map_err(|e| Fault::Kernel("read its text", e))?;
        let mut remote =
            Self { pid, regs, ground: Ground::Program { text }, code: regs.rip, scratch, mask, deferred: Vec::new() };
        // A blocked breakpoint would have its disposition reset; everything else waits until the process is whole.
        trace::set_signal_mask(pid, !(1 << (libc::SIGTRAP - 1))).map_err(|e| Fault::Kernel("block its signals", e))?;
        if let Err(e) = remote.write_text(bootstrap::code()) {
            remote.restore_text()?;
            return Err(Fault::Kernel("write to its text", e));
        }
        Ok(Some(remote))
    }

    /// One that is not set up yet: see `visit`.
    pub(crate) fn elsewhere(pid: pid_t, stop: (user_regs_struct, u64), instruction: u64, at: [u64; 2]) -> Self {
        let ((regs, mask), [code, scratch]) = (stop, at);
        Self { pid, regs, ground: Ground::Own { instruction }, code, scratch, mask, deferred: Vec::new() }
    }

    /// Registers at the stop.
    pub fn registers(&self) -> &user_regs_struct {
        &self.regs
    }

    /// An empty batch whose data will lie in this process.
    pub fn batch(&self) -> Batch {
        Batch { base: self.scratch, ..Batch::default() }
    }

    /// Makes the calls. `Ok(Some(i))`: call i failed, its result says why, and those after it were not made.
    pub fn run(&mut self, batch: &mut Batch) -> Result<Option<usize>, Fault> {
        let start = self.begin(batch)?;
        self.go_to_breakpoint(start, trace::resume)?;
        self.end(batch)
    }

    /// Writes the table; the registers to start with.
    fn begin(&self, batch: &Batch) -> Result<user_regs_struct, Fault> {
        let mut image = vec![0u8; SCRATCH];
        image[..batch.data.len()].copy_from_slice(&batch.data);
        let end = Call { number: -1, ..Call::default() };
        let calls: &[u8] = bytemuck::cast_slice(&batch.calls);
        image[DATA..DATA + calls.len()].copy_from_slice(calls);
        image[DATA + calls.len()..][..std::mem::size_of::<Call>()].copy_from_slice(bytemuck::bytes_of(&end));
        write_memory(self.pid, self.scratch, &image).map_err(|e| Fault::Kernel("write below its stack", e))?;
        Ok(user_regs_struct { rip: self.code, rbx: self.scratch + DATA as u64, ..self.regs })
    }

    fn end(&self, batch: &mut Batch) -> Result<Option<usize>, Fault> {
        let mut image = vec![0u8; SCRATCH];
        read_memory(self.pid, self.scratch, &mut image).map_err(|e| Fault::Kernel("read below its stack", e))?;
        let data = batch.data.len();
        batch.data.copy_from_slice(&image[..data]);
        let calls = std::mem::size_of_val(batch.calls.as_slice());
        bytemuck::cast_slice_mut(&mut batch.calls).copy_from_slice(&image[DATA..DATA + calls]);
        Ok(batch.calls.iter().position(|call| (-4095..0).contains(&call.result)))
    }

    /// Makes calls of which each counts by itself: one that fails does not keep the others from being made.
    pub fn run_each(&mut self, mut calls: Vec<(i64, Vec<u64>)>) -> Result<(), Fault> {
        while !calls.is_empty() {
            let mut batch = self.batch();
            for (number, args) in &calls {
                batch.call(*number, args);
            }
            match self.run(&mut batch)? {
                None => break,
                Some(failed) => drop(calls.drain(..=failed)),
            }
        }
        Ok(())
    }

    /// The signals that the process had blocked at the stop.
    pub fn signal_mask(&self) -> u64 {
        self.mask
    }

    /// Removes every trace of the table and lets the process go on at `rip` with these signals blocked, untraced.
    pub fn leave(self, rip: u64, mask: u64) -> Result<(), Fault> {
        let regs = user_regs_struct { rip, orig_rax: u64::MAX, ..self.regs };
        self.go(&regs, mask)
    }

    /// The same, with these registers.
    pub(crate) fn go(mut self, regs: &user_regs_struct, mask: u64) -> Result<(), Fault> {
        self.clear_up()?;
        trace::set_signal_mask(self.pid, mask).map_err(|e| Fault::Kernel("set its signal mask", e))?;
        trace::set_registers(self.pid, regs).map_err(|e| Fault::Kernel("set its registers", e))?;
        self.send_deferred();
        trace::detach(self.pid, 0).map_err(|e| Fault::Kernel("detach", e))
    }

    /// Has the process execute `file` instead of what it was to become: with `words`, its own arguments after them, and its own
    /// environment. Then, or if the kernel refuses, it goes on untraced.
    pub fn execute(mut self, file: &CStr, words: &[CString]) -> Result<Result<(), Errno>, Fault> {
        let (image, base, [path, arguments, environment]) = self.words(file, words)?;
        if let Err(e) = write_memory(self.pid, base, &image) {
            // More than the kernel has mapped for a stack at first.
            return self.leave_as_it_was().map(|()| Err(e));
        }
        let mut batch = self.batch();
        batch.call(libc::SYS_execve, &[path, arguments, environment]);
        let start = self.begin(&batch)?;
        match self.go_on(start, trace::resume)? {
            At::Exec => {
                trace::set_signal_mask(self.pid, self.mask).map_err(|e| Fault::Kernel("set its signal mask", e))?;
                self.send_deferred();
                trace::detach(self.pid, 0).map_err(|e| Fault::Kernel("detach", e)).map(Ok)
            }
            At::Breakpoint => {
                self.end(&mut batch)?;
                let refused = Errno::from_raw_os_error(-batch.calls[0].result as i32);
                write_memory(self.pid, base, &vec![0; image.len()])
                    .map_err(|e| Fault::Kernel("clear below its stack", e))?;
                self.leave_as_it_was().map(|()| Err(refused))
            }
        }
    }

    fn leave_as_it_was(self) -> Result<(), Fault> {
        let (rip, mask) = (self.regs.rip, self.mask);
        self.leave(rip, mask)
    }

    /// What `file` and `words` are in its memory, where they come to lie, and what execve is told: path, arguments, environment.
    fn words(&self, file: &CStr, words: &[CString]) -> Result<(Vec<u8>, u64, [u64; 3]), Fault> {
        let read = |address, bytes: &mut [u8]| {
            read_memory(self.pid, address, bytes).map_err(|e| Fault::Kernel("read its arguments", e))
        };
        // As the kernel left them: their number, their addresses, a null, those of the environment.
        let mut count = [0; 8];
        read(self.regs.rsp, &mut count)?;
        let count = u64::from_ne_bytes(count);
        if count > MOST_WORDS {
            // Another process has written here.
            return Err(Fault::Kernel("read its arguments", Errno::TOOBIG));
        }
        let entry = |number: u64| self.regs.rsp + 8 * (1 + number);
        let mut own = vec![0; 8 * count as usize];
        read(entry(0), &mut own)?;
        let texts: Vec<_> =
            std::iter::once(file).chain(words.iter().map(CString::as_c_str)).map(CStr::to_bytes_with_nul).collect();
        let room = texts.iter().map(|text| text.len()).sum::<usize>() + 8 * (words.len() + 2) + own.len();
        let base = (self.scratch - room as u64) & !63;
        let (mut image, mut places) = (Vec::with_capacity(room), Vec::new());
        for text in texts {
            places.push(base + image.len() as u64);
            image.extend_from_slice(text);
        }
        image.resize(image.len().next_multiple_of(8), 0);
        let arguments = base + image.len() as u64;
        image.extend(places[1..].iter().flat_map(|place| place.to_ne_bytes()));
        image.extend_from_slice(&own);
        image.extend_from_slice(&[0; 8]);
        Ok((image, base, [places[0], arguments, entry(count + 1)]))
    }

    fn send_deferred(&mut self) {
        for signal in std::mem::take(&mut self.deferred) {
            // SAFETY: plain system call; the process is traced by us and stopped, so that its number cannot be another's.
            unsafe { libc::kill(self.pid, signal) };
        }
    }

    fn clear_up(&mut self) -> Result<(), Fault> {
        match self.ground {
            Ground::Program { .. } => {
                let cleared = write_memory(self.pid, self.scratch, &[0; SCRATCH]);
                cleared.map_err(|e| Fault::Kernel("clear below its stack", e))?;
                self.restore_text()
            }
            Ground::Own { instruction } => self.unmap(instruction, &[self.code, self.scratch]),
        }
    }

    /// Starts with these registers, in the way given; returns once a breakpoint was met, or a step was made.
    pub(crate) fn go_to_breakpoint(
        &mut self,
        start: user_regs_struct,
        go: impl Fn(pid_t, i32) -> Result<(), Errno>,
    ) -> Result<(), Fault> {
        match self.go_on(start, go)? {
            At::Breakpoint => Ok(()),
            At::Exec => Err(Fault::Kernel("run the bootstrap", Errno::FAULT)),
        }
    }

    fn go_on(&mut self, start: user_regs_struct, go: impl Fn(pid_t, i32) -> Result<(), Errno>) -> Result<At, Fault> {
        // Nothing is to be restarted.
        let regs = user_regs_struct { orig_rax: u64::MAX, ..start };
        trace::set_registers(self.pid, &regs).map_err(|e| Fault::Kernel("set its registers", e))?;
        loop {
            go(self.pid, 0).map_err(|e| Fault::Kernel("let it run", e))?;
            let stop = trace::wait_stop(self.pid)?;
            match stop.signal {
                libc::SIGTRAP if stop.event == 0 => return Ok(At::Breakpoint),
                // Only what cannot be blocked gets here: SIGSTOP, or a fault in the bootstrap itself.
                libc::SIGSTOP => self.deferred.push(libc::SIGSTOP),
                libc::SIGTRAP if stop.event == libc::PTRACE_EVENT_EXEC => return Ok(At::Exec),
                libc::SIGTRAP => (),
                _ => return Err(Fault::Kernel("run the bootstrap", Errno::FAULT)),
            }
        }
    }

    pub(crate) fn write_text(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        for (i, word) in bytes.chunks_exact(8).enumerate() {
            let word = u64::from_ne_bytes(word.try_into().expect("chunks of eight"));
            trace::poke(self.pid, self.code + 8 * i as u64, word)?;
        }
        Ok(())
    }

    fn restore_text(&mut self) -> Result<(), Fault> {
        let Ground::Program { text } = &mut self.ground else { return Ok(()) };
        let text = std::mem::take(text);
        self.write_text(&text).map_err(|e| Fault::Kernel("restore its text", e))
    }
}

/// Reads memory of a process of ours.
pub fn read_memory(pid: pid_t, address: u64, bytes: &mut [u8]) -> Result<(), Errno> {
    let local = iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote = iovec { iov_base: address as *mut _, iov_len: bytes.len() };
    // SAFETY: `local` describes `bytes`, which the kernel may fill; `remote` is checked by the kernel.
    whole(unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) }, bytes.len())
}

/// Writes memory of a process of ours, where it may write itself.
pub fn write_memory(pid: pid_t, address: u64, bytes: &[u8]) -> Result<(), Errno> {
    let local = iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = iovec { iov_base: address as *mut _, iov_len: bytes.len() };
    // SAFETY: the kernel only reads what `local` describes; `remote` is checked by the kernel.
    whole(unsafe { libc::process_vm_writev(pid, &local, 1, &remote, 1, 0) }, bytes.len())
}

fn whole(done: isize, wanted: usize) -> Result<(), Errno> {
    match done {
        n if n == wanted as isize => Ok(()),
        n if n < 0 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
        _ => Err(Errno::FAULT),
    }
}
