//! Objects of the kernel's without a name come back when everything has died but the store: `outlast resume` makes them anew, as they were.

mod support;

use serde_json::Value;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use support::{finish, kill_everything, said, until, Home};

/// A program that shows what it does in a file, is killed with all that belongs to it, and resumed.
struct Resumed<'h> {
    home: &'h Home,
    out: PathBuf,
    child: Option<Child>,
}

impl<'h> Resumed<'h> {
    fn start(home: &'h Home, command: &[&str]) -> Self {
        let mut this = Self { home, out: home.file("out"), child: None };
        let mut run = home.outlast(["run", "--name", "it", "--"]);
        this.begin(run.args(command).current_dir(home.path()));
        this
    }

    fn begin(&mut self, command: &mut Command) {
        let out = OpenOptions::new().append(true).create(true).open(&self.out).unwrap();
        let complaints = std::fs::File::create(self.home.file("complaints")).unwrap();
        self.child = Some(command.stdout(out).stderr(complaints).spawn().unwrap());
    }

    fn shown(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap()
    }

    fn lost(&self) -> Vec<Value> {
        let log = self.home.log("it").into_iter();
        log.filter(|entry| entry["event"] == "degradation").map(|entry| entry["cause"].clone()).collect()
    }

    /// Everything dies once the program has shown this line, and it is resumed.
    fn dies_at(&mut self, line: &str) {
        until(&format!("the line {line}"), || self.shown().lines().any(|shown| shown == line));
        // Just resumed, it has not all of them yet.
        let is_whole = |status: &Value| ["supervisor", "anchor", "pid"].iter().all(|process| status[process].is_u64());
        let status = self.home.await_status("it", |status| status["protected"] == true && is_whole(status));
        kill_everything(&status);
        finish(self.child.take().unwrap());
        self.home.await_status("it", |status| status["state"] == "resumable");
        let mut resume = self.home.outlast(["resume", "it"]);
        self.begin(&mut resume);
    }

    /// What is told of as lost, after the program's end with this status.
    fn ends(&mut self, status: i32) -> Vec<Value> {
        let output = finish(self.child.take().unwrap());
        let complaints = std::fs::read_to_string(self.home.file("complaints")).unwrap();
        assert_eq!(output.status.code(), Some(status), "{}{complaints}{}", said(&output), self.shown());
        self.lost()
    }
}

/// The same without outlast, in the same folder.
fn native(home: &Home, command: &[&str]) -> String {
    let output = Command::new(command[0]).args(&command[1..]).current_dir(home.path()).stdin(Stdio::null()).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

/// One of each kind, with something in it; some are used between the last output and the death.
const OBJECTS: &str = "import ctypes, fcntl, os, select, signal, socket, struct, time
libc = ctypes.CDLL(None, use_errno=True)
def spec(*values):
    return struct.pack('4q', *values)
def timer(clock, flags, *values):
    fd = libc.timerfd_create(clock, os.O_NONBLOCK | os.O_CLOEXEC)
    assert fd >= 0 and not libc.timerfd_settime(fd, flags, spec(*values), None)
    return fd
def left(fd):
    at = ctypes.create_string_buffer(32)
    assert not libc.timerfd_gettime(fd, at)
    return struct.unpack('4q', at.raw)
def attempt(call):
    try:
        return call()
    except OSError as e:
        return e.strerror

count, tokens, many = os.eventfd(5), os.eventfd(3, os.EFD_SEMAPHORE | os.EFD_NONBLOCK), os.eventfd(0)
os.eventfd_write(many, (1 << 64) - 2)
r, w = os.pipe()
os.write(w, b'first second')
wide_r, wide_w = os.pipe()
fcntl.fcntl(wide_w, 1031, 1 << 18)
os.write(wide_w, bytes(k % 251 for k in range(100000)))
ended, w2 = os.pipe()
os.write(w2, b'left')
os.close(w2)
r3, unread = os.pipe()
os.close(r3)
again = os.dup(r)
fcntl.fcntl(r, fcntl.F_SETFL, os.O_NONBLOCK)
near, far = socket.socketpair()
near.send(b'to the far one')
far.send(b'to the near one')
near.shutdown(socket.SHUT_WR)
grams = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
packets = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
for pair in grams, packets:
    for n in range(5):
        pair[0].send(b'message %d' % n)
lonely, gone = socket.socketpair()
gone.send(b'farewell')
gone.close()
late = timer(time.CLOCK_MONOTONIC, 0, 7, 5, 100000, 0)
expired = timer(time.CLOCK_MONOTONIC, 0, 0, 0, 0, 1)
over = timer(time.CLOCK_BOOTTIME, 0, 0, 0, 0, 1)
wall = timer(time.CLOCK_REALTIME, 1, 3600, 0, int(time.time()) - 5400, 0)
unset = libc.timerfd_create(time.CLOCK_MONOTONIC, 0)
while not select.select([over], [], [], 1)[0]:
    pass
os.read(over, 8)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGUSR2])
mask = struct.pack('Q', 1 << signal.SIGUSR1 - 1)
signals = libc.signalfd(-1, mask, os.O_NONBLOCK)
inner, outer = select.epoll(), select.epoll()
IN, ONCE = select.EPOLLIN, select.EPOLLIN | select.EPOLLONESHOT
inner.register(r, IN)
inner.register(count, ONCE)
inner.register(tokens, ONCE)
inner.register(signals, IN)
inner.register(late, IN | select.EPOLLET)
inner.register(far, 0)
outer.register(inner, IN)
libc.epoll_wait(inner.fileno(), ctypes.create_string_buffer(64), 4, 0)
inner.modify(tokens, ONCE)
def told(epoll):
    return sorted(epoll.poll(0))
print('ready', flush=True)
taken = os.read(r, 6), os.eventfd_read(tokens), near.recv(7)
while not os.path.exists('door'):
    pass
print(taken, told(outer) == [(inner.fileno(), IN)], told(inner) == [(tokens, IN), (r, IN)], told(inner) == [(r, IN)])
print(os.read(again, 99), attempt(lambda: os.read(r, 9)), os.get_inheritable(again))
print(os.eventfd_read(count), os.eventfd_read(tokens), os.eventfd_read(tokens), attempt(lambda: os.eventfd_read(tokens)))
print(os.eventfd_read(many))
print(fcntl.fcntl(wide_r, 1032), os.read(wide_r, 1 << 18) == bytes(k % 251 for k in range(100000)))
print(os.read(ended, 99), os.read(ended, 99), attempt(lambda: os.write(unread, b'x')))
print(near.recv(99), far.recv(99), far.recv(99), attempt(lambda: near.send(b'x')), far.send(b'more'), near.recv(99))
for pair in grams, packets:
    print([pair[1].recv(99) for _ in range(5)], pair[1].send(b'back'), pair[0].recv(99))
print(lonely.recv(99), lonely.recv(99))
print(left(late)[:2], 99000 < left(late)[2] < 100000, os.read(expired, 8), attempt(lambda: os.read(over, 8)))
print(os.read(wall, 8)[0], left(wall)[:2], 0 < left(wall)[2] <= 3600, left(unset))
os.kill(os.getpid(), signal.SIGUSR1)
os.kill(os.getpid(), signal.SIGUSR2)
print(os.read(signals, 128)[0], attempt(lambda: os.read(signals, 128)))
os.eventfd_write(count, 1)
inner.modify(count, ONCE)
print(told(inner) == [(count, IN)], told(inner))";

#[test]
fn what_has_no_name_comes_back_as_it_was() {
    let home = Home::new();
    let command = ["/usr/bin/python3", "-c", OBJECTS];
    let mut program = Resumed::start(&home, &command);
    program.dies_at("ready");
    // Nothing of the program has run since, or all that it does before the door.
    program.dies_at("ready");
    home.door().open();
    let lost = program.ends(0);
    assert_eq!(program.shown(), native(&home, &command));
    assert!(lost.is_empty(), "{lost:?}");
}

/// Waits for others in the loop, where it dies: a thread of its pool wakes it, and so does a signal.
const LOOP: &str = "import asyncio, os, signal
async def main():
    loop, heard = asyncio.get_running_loop(), asyncio.Queue()
    loop.add_signal_handler(signal.SIGUSR1, lambda: heard.put_nowait('signal'))
    r, w = os.pipe()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(r, 'rb'))
    for n in range(4):
        os.write(w, b'line %d\\n' % n)
        print('round', n, flush=True)
        while not os.path.exists('door%d' % n):
            await asyncio.sleep(0.002)
        print(await asyncio.to_thread(lambda: n * n), (await reader.readline()).decode().strip())
        os.kill(os.getpid(), signal.SIGUSR1)
        print(await heard.get(), flush=True)
asyncio.run(main())";

#[test]
fn an_event_loop_goes_on_after_one_resume_and_another() {
    let home = Home::new();
    let command = ["/usr/bin/python3", "-c", LOOP];
    let mut program = Resumed::start(&home, &command);
    for n in 0..4 {
        program.dies_at(&format!("round {n}"));
        std::fs::write(home.file(&format!("door{n}")), "").unwrap();
    }
    let lost = program.ends(0);
    assert_eq!(program.shown(), native(&home, &command));
    assert!(lost.is_empty(), "{lost:?}");
}
