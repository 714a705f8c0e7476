//! Objects of the kernel's without a name come back when everything has died but the store: `outlast resume` makes them anew, as they were.

mod support;

use serde_json::Value;
use std::fs::OpenOptions;
use std::io::Write;
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

/// Pipes that have a name: one between the program's own descriptors, one whose writers come later, one in which something lies.
const NAMED: &str = "import fcntl, os, select, sys
def attempt(call):
    try:
        return call()
    except OSError as e:
        return e.strerror
for name in 'own', 'others', 'lying':
    if not os.path.exists(name):
        os.mkfifo(name)
kept = os.open('others', os.O_RDWR)
early = os.open('own', os.O_RDWR)
w = os.open('own', os.O_WRONLY)
r = os.open('own', os.O_RDONLY | os.O_NONBLOCK)
os.close(early)
fcntl.fcntl(w, fcntl.F_SETFL, os.O_NONBLOCK)
fcntl.fcntl(r, fcntl.F_SETFL, 0)
lying = os.open('lying', os.O_RDWR | os.O_NONBLOCK)
if sys.argv[1:]:
    os.write(lying, b'what lies there')
epoll = select.epoll()
epoll.register(r, select.EPOLLIN)
print('ready', flush=True)
while not os.path.exists('door'):
    pass
print(epoll.poll(0), os.write(w, b'text'), epoll.poll(0) == [(r, select.EPOLLIN)], os.read(r, 9))
print([fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK != 0 for fd in (r, w, kept, lying)])
print(attempt(lambda: os.read(lying, 99)))
print('waits', flush=True)
print(os.read(kept, 99))
os.close(r)
print(attempt(lambda: os.write(w, b'x')))";

/// Has the program ask for bytes by the pipe, and gives it some.
fn with_writer(home: &Home, arguments: &[&str]) -> (String, Vec<Value>) {
    let command = [&["/usr/bin/python3", "-c", NAMED], arguments].concat();
    let mut program = Resumed::start(home, &command);
    program.dies_at("ready");
    home.door().open();
    until("it waits for a writer", || program.shown().ends_with("waits\n"));
    std::fs::write(home.file("others"), "from others").unwrap();
    let lost = program.ends(0);
    (program.shown(), lost)
}

#[test]
fn pipes_with_a_name_are_opened_again() {
    let (shown, lost) = with_writer(&Home::new(), &[]);
    let expected = "ready\n[] 4 True b'text'\n[False, True, False, True]\nResource temporarily unavailable\nwaits\n\
        b'from others'\nBroken pipe\n";
    assert_eq!(shown, expected);
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn what_lay_in_a_pipe_with_a_name_that_nobody_else_had_is_told_to_be_lost() {
    let (shown, lost) = with_writer(&Home::new(), &["lies"]);
    assert!(shown.contains("Resource temporarily unavailable"), "{shown}");
    assert_eq!(lost, ["descriptor-lost"]);
}

/// Watches with gaps between their numbers, one that was changed, one of a file that is gone, one of what nobody follows.
const WATCHES: &str = "import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(os.O_NONBLOCK)
MODIFY, CREATE, DELETE, ADD, ONLY_LINK, DIRECTORY = 2, 0x100, 0x200, 0x20000000, 0x2000000, 0x1000000
def watch(path, mask):
    return libc.inotify_add_watch(fd, path.encode(), mask)
def told():
    found, events = [], b''
    try:
        events = os.read(fd, 65536)
    except BlockingIOError:
        pass
    while events:
        wd, mask, cookie, length = struct.unpack('iIII', events[:16])
        found.append((wd, hex(mask), events[16:16 + length].rstrip(b'\\0').decode()))
        events = events[16 + length:]
    return found
def append(path):
    with open(path, 'a') as file:
        file.write('more')
os.makedirs('folder', exist_ok=True)
for name in 'a', 'b', 'c', 'gone', 'folder/old':
    append(name)
if not os.path.islink('link'):
    os.symlink('a', 'link')
print([watch(name, MODIFY) for name in ('b', 'a', 'gone', 'c')])
libc.inotify_rm_watch(fd, 1)
for n in range(3000):
    libc.inotify_rm_watch(fd, watch('b', MODIFY))
print(watch('folder', CREATE | DELETE | DIRECTORY), watch('link', ADD | 4 | ONLY_LINK), watch('a', 4), watch('a', MODIFY | ADD))
os.remove('gone')
last = watch('b', MODIFY)
libc.inotify_rm_watch(fd, last)
while told():
    pass
print('ready', flush=True)
while not os.path.exists('door'):
    pass
print(told())
append('a'), append('b'), append('c'), append('gone'), os.remove('folder/old')
os.chmod('a', 0o600)
print(told())
print(watch('b', MODIFY) - last, watch('a', MODIFY), libc.inotify_rm_watch(fd, 4), libc.inotify_rm_watch(fd, 3))
append('b'), append('c'), open('folder/new', 'w').close(), os.remove('folder/new')
print(told())";

#[test]
fn watches_of_files_come_back_under_their_numbers() {
    let home = Home::new();
    let command = ["/usr/bin/python3", "-c", WATCHES];
    let mut program = Resumed::start(&home, &command);
    program.dies_at("ready");
    program.dies_at("ready");
    home.door().open();
    let lost = program.ends(0);
    let other = Home::new();
    other.door().open();
    assert_eq!(program.shown(), native(&other, &command));
    assert!(lost.is_empty(), "{lost:?}");
}

/// Two files and more watches than are kept.
const MANY: &str = "import ctypes, os
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(os.O_NONBLOCK)
for n in range(400):
    open('file%d' % n, 'w').close()
    assert libc.inotify_add_watch(fd, b'file%d' % n, 2) == n + 1
print('ready', flush=True)
while not os.path.exists('door'):
    pass
open('file7', 'a').write('more')
print(int.from_bytes(os.read(fd, 999)[:4], 'little'))";

#[test]
fn watches_that_are_not_kept_are_told_of() {
    let home = Home::new();
    let mut program = Resumed::start(&home, &["/usr/bin/python3", "-c", MANY]);
    program.dies_at("ready");
    home.door().open();
    let lost = program.ends(0);
    assert_eq!(program.shown(), "ready\n8\n");
    assert_eq!(lost, ["descriptor-lost"]);
}

#[test]
fn a_tail_that_follows_a_file_goes_on() {
    let home = Home::new();
    let log = home.file("log");
    std::fs::write(&log, "one\n").unwrap();
    let mut program = Resumed::start(&home, &["/usr/bin/tail", "-f", log.to_str().unwrap()]);
    let mut add = OpenOptions::new().append(true).open(&log).unwrap();
    for (times, (line, next)) in [("one", "two"), ("two", "three"), ("three", "four")].into_iter().enumerate() {
        program.dies_at(line);
        home.await_event("it", "resumed", times + 1);
        writeln!(add, "{next}").unwrap();
    }
    until("the last line", || program.shown() == "one\ntwo\nthree\nfour\n");
    // A message that it had not read when it died is lost, and told of: by then it had read the file, perhaps.
    assert!(program.lost().iter().all(|lost| lost == "descriptor-lost"), "{:?}", program.lost());
    assert!(home.outlast(["stop", "it"]).status().unwrap().success());
    finish(program.child.take().unwrap());
}
