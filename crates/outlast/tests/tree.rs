//! Programs that are trees of processes (`--tree`): each process is killed at any moment, and nobody notices, neither outside nor in the
//! tree.

mod support;

use support::tree::{
    any, assert_same, kill, native, outlasts, programs, start, youngest, Harassment, NOBODY, PIPELINE,
};
use support::{finish, said, until, Home};

/// posix_spawn and vfork, whose children have their parent's memory: for what is there, for what is not, and for one that is never executed.
const SPAWNS: &str = "import os, subprocess, sys
def spawn(*arguments):
    sys.stdout.flush()
    try:
        pid = os.posix_spawn(arguments[0], arguments, os.environ)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    except OSError as e:
        print(e.strerror)
spawn('/bin/sh', '-c', 'echo $0 $PPID | wc -w; exit 3')
spawn('/no/such/program')
spawn('/etc/passwd')
spawn('/bin/sh', '-c', 'kill -TERM $$')
for command in ['true'], ['no-such-program'], ['sh', '-c', 'cat <&0 >&2']:
    try:
        print(subprocess.run(command, input=b'text', capture_output=True, start_new_session=True))
    except OSError as e:
        print(e.strerror)
print(os.system('exit 7'))";

/// fork by a program with threads, with memory that is not copied, and into another process group.
const FORKS: &str = "import mmap, os, threading
over = threading.Event()
threads = [threading.Thread(target=over.wait) for _ in range(3)]
[thread.start() for thread in threads]
kept, wiped = (mmap.mmap(-1, 8192, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(2))
kept[:], wiped[:] = b'k' * 8192, b'w' * 8192
wiped.madvise(18)
r, w = os.pipe()
for n in range(3):
    pid = os.fork()
    if pid == 0:
        os.close(w)
        os.read(r, 1)
        print(n, len(os.listdir('/proc/self/task')), kept[:3], wiped[:3], os.getpgrp() == os.getpid(), flush=True)
        os._exit(n)
    os.setpgid(pid, 0)
    os.write(w, b'x')
    print(os.getpgid(pid) == pid, os.waitpid(-pid, 0) == (pid, n << 8), flush=True)
try:
    os.setpgid(1, 1)
except OSError as e:
    print(e.strerror)
over.set()";

/// A process whose parent ends, and that wants a signal then.
const DEATHS: &str = "import ctypes, os, signal, time
libc = ctypes.CDLL(None)
r, w = os.pipe()
parent = os.fork()
if parent == 0:
    if os.fork() == 0:
        signal.signal(signal.SIGUSR1, lambda *_: (os.write(w, b'told'), os._exit(0)))
        wanted = ctypes.c_int()
        print(libc.prctl(1, 65), libc.prctl(1, signal.SIGUSR1), libc.prctl(2, ctypes.byref(wanted)), wanted.value, flush=True)
        os.write(w, b'ready')
        while True:
            time.sleep(1)
    os.read(r, 5)
    os._exit(3)
print(os.waitpid(parent, 0)[1], flush=True)
print(os.read(r, 4), flush=True)";

/// Children one after the other, each of which is told by a signal that its parent has ended, and tells its grandparent.
const ORPHANS: &str = "import ctypes, os, signal, time
libc = ctypes.CDLL(None)
r, w = os.pipe()
def told(*_):
    os.write(w, b'told')
    os._exit(0)
for n in range(10):
    parent = os.fork()
    if parent == 0:
        if os.fork() == 0:
            signal.signal(signal.SIGUSR1, told)
            libc.prctl(1, signal.SIGUSR1)
            os.write(w, b'ready')
            while True:
                time.sleep(1)
        os.read(r, 5)
        os._exit(3)
    print(n, os.waitpid(parent, 0)[1], os.read(r, 4), flush=True)";

/// What children use, and theirs, counts for who waits for them, also after an execve.
const USES: &str = "import os, resource, sys
BURN = 'import time\\nwhile time.process_time() < 0.2: pass'
def used():
    usage, times = resource.getrusage(resource.RUSAGE_CHILDREN), os.times()
    return usage.ru_utime + usage.ru_stime, times.children_user + times.children_system
if len(sys.argv) > 1:
    print(0.38 < used()[0] < 2, abs(used()[0] - used()[1]) < 0.03, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 2000)
    os._exit(0)
for _ in range(2):
    if os.fork() == 0:
        os._exit(os.spawnv(os.P_WAIT, sys.executable, ['python3', '-c', BURN]))
    os.wait()
os.execv(sys.executable, ['python3', '-c', open('/proc/self/cmdline').read().split(chr(0))[2], 'again'])";

/// fork by a program with threads, whose children tell for a while who they are.
const TELLERS: &str = "import os, threading, time
over = threading.Event()
threads = [threading.Thread(target=over.wait) for _ in range(3)]
[thread.start() for thread in threads]
for n in range(12):
    pid = os.fork()
    if pid == 0:
        for i in range(5):
            print(n, i, len(os.listdir('/proc/self/task')), flush=True)
            time.sleep(0.003)
        os._exit(n)
    print(os.waitpid(pid, 0) == (pid, n << 8), flush=True)
over.set()";

/// Any process of the command is killed again and again, by so many seeds.
fn outlasts_kills(command: &[&str], seeds: u64) {
    let home = Home::new();
    outlasts(&home, command, &Harassment { seeds, kills: 9, pause_us: 40_000, choose: any });
}

#[test]
fn trees_show_what_they_show_without_outlast() {
    const COMMANDS: &[&[&str]] = &[
        &["sh", "-c", "(exit 3); echo $?; no-such-command 2> /dev/null; echo $?; exit 4"],
        &["bash", "-c", "for i in 1 2 3; do echo $i | sed s/^/x/; done | sort -r; sleep 0.1 & wait $!; echo $?"],
        &["bash", "-c", "trap 'echo told' CHLD; (exit 4); echo $?; bash -c '[ $PPID = '$$' ] && echo mine'"],
        &["bash", "-c", "sleep 100 & kill $!; wait $! 2> /dev/null; echo $?"],
        &["timeout", "0.2", "sleep", "100"],
        &[
            "python3",
            "-c",
            "import subprocess, os
print(subprocess.run(['sh', '-c', 'echo out; exit 9'], capture_output=True))
pid = os.fork()
if pid == 0:
    os._exit(3)
seen = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
print(seen.si_status, seen.si_code, seen.si_pid == pid, os.wait()[0] == pid)
try:
    os.wait()
except ChildProcessError:
    print('none')
pid = os.fork()
if pid == 0:
    os._exit(0)
while open(f'/proc/{pid}/stat').read().split()[2] != 'Z':
    pass
print(os.kill(pid, 0), os.getpgid(pid) == os.getpgrp(), os.waitpid(pid, 0) == (pid, 0))
while os.path.exists(f'/proc/{pid}'):
    pass",
        ],
        &["python3", "-c", SPAWNS],
        &["python3", "-W", "ignore", "-c", FORKS],
        &["python3", "-c", DEATHS],
        &["python3", "-c", USES],
    ];
    let home = Home::new();
    for (n, command) in COMMANDS.iter().enumerate() {
        let name = format!("tree-{n}");
        let output = finish(start(&home, &name, command));
        assert_same(&output, &native(command), command[command.len() - 1]);
        let log = home.log(&name);
        assert!(!log.iter().any(|entry| entry["event"] == "degradation"), "{log:#?}");
    }
}

#[test]
fn any_process_of_a_tree_may_be_killed_at_any_moment() {
    let command = ["sh", "-c", PIPELINE];
    outlasts_kills(&command, 4);
}

#[test]
fn the_same_by_a_user_whose_recovered_processes_have_other_numbers() {
    let home = Home::of(NOBODY);
    let command = ["sh", "-c", PIPELINE];
    outlasts(&home, &command, &Harassment { seeds: 3, kills: 5, pause_us: 40_000, choose: any });
}

#[test]
fn a_child_is_made_once_whenever_it_is_killed() {
    let home = Home::new();
    let command = ["sh", "-c", "i=0; while [ $i -lt 60 ]; do (exit $i); echo $?; i=$((i+1)); done"];
    outlasts(&home, &command, &Harassment { seeds: 1, kills: 6, pause_us: 2_000, choose: youngest });
}

#[test]
fn a_child_with_its_parents_memory_is_made_once_whenever_it_is_killed() {
    let home = Home::new();
    let script = "import os, subprocess
for i in range(40):
    print(i, subprocess.run(['sh', '-c', f'exit {i}']).returncode, flush=True)
    pid = os.posix_spawn('/bin/echo', ['echo', str(i)], os.environ)
    print(os.waitpid(pid, 0) == (pid, 0), flush=True)";
    let command = ["python3", "-c", script];
    outlasts(&home, &command, &Harassment { seeds: 1, kills: 6, pause_us: 4_000, choose: youngest });
}

#[test]
fn what_a_program_with_threads_forks_may_be_killed_as_well() {
    let command = ["python3", "-W", "ignore", "-c", TELLERS];
    outlasts_kills(&command, 3);
}

#[test]
fn whom_a_process_of_the_tree_kills_stays_dead() {
    let home = Home::new();
    let command = ["bash", "-c", "sleep 100 & kill -9 $!; wait $! 2> /dev/null; echo $?"];
    assert_same(&finish(start(&home, "shell", &command)), &native(&command), "by number");
    let command = ["timeout", "-s", "KILL", "0.2", "sleep", "100"];
    assert_same(
        &finish(start(&home, "group", &["setsid", "-w", "sh", "-c", "timeout -s KILL 0.2 sleep 100; echo $?"])),
        &native(&["setsid", "-w", "sh", "-c", "timeout -s KILL 0.2 sleep 100; echo $?"]),
        command[0],
    );
}

/// A shell and its children write to a file whose offset they share, then append to one, and read from a third; each writes as often as the
/// others.
const FILES: &str = "cd $(mktemp -d)
i=0; while [ $i -lt 25 ]; do i=$((i+1)); echo $i; /bin/echo command $i; (echo subshell $i); done > offset
for n in 1 2 3; do
    (i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo $n $i >&3; done) 3>> end &
done
wait
sort end | md5sum
while read line; do
    echo $line
    case $line in *5) (read next; echo child $next); /usr/bin/head -n 1;; esac
done < offset
cat offset | md5sum; rm -r $PWD";

#[test]
fn files_that_processes_share_are_written_and_read_once() {
    outlasts_kills(&["sh", "-c", FILES], 12);
}

/// A parent that sends its child signals, one for each answer, and in the end another that ends it. The child takes them in a handler, and
/// then waiting for them.
const SIGNALLERS: &str = "import os, signal
def child_of(answer):
    child = os.fork()
    if child != 0:
        return child
    wake, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told)
    signal.signal(signal.SIGUSR2, lambda *_: answer())
    os.write(w, b'.')
    while True:
        os.read(wake, 100)
count = 0
def answer():
    global count
    count += 1
    os.write(w, b'%d ' % count)
def waits():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    child = os.fork()
    if child != 0:
        return child
    os.write(w, b'.')
    while True:
        signal.sigwait([signal.SIGUSR2])
        answer()
for make in lambda: child_of(answer), waits:
    r, w = os.pipe()
    child = make()
    answers = os.read(r, 1)
    for n in range(60):
        os.kill(child, signal.SIGUSR2)
        print(n, os.read(r, 100), flush=True)
    os.kill(child, signal.SIGTERM)
    print(os.waitpid(child, 0)[1], flush=True)";

#[test]
fn a_stopped_process_that_is_killed_stays_stopped() {
    let home = Home::new();
    let (door, file) = (home.door(), home.file("out"));
    let script = format!(
        "import os, signal, sys
child = os.fork()
while child == 0:
    signal.pause()
os.kill(child, signal.SIGSTOP)
print(os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1]), flush=True)
os.system({door:?})
print(os.waitpid(child, os.WUNTRACED | os.WCONTINUED | os.WNOHANG) == (0, 0), file=open({file:?}, 'w'))
os.kill(child, signal.SIGCONT)
print(os.WIFCONTINUED(os.waitpid(child, os.WCONTINUED)[1]), flush=True)
os.kill(child, signal.SIGTERM)
print(os.waitpid(child, 0)[1])",
        door = door.wait(),
    );
    let child = start(&home, "stopped", &["python3", "-c", &script]);
    let state = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_stopped = || programs(&home, "stopped").get(1).is_some_and(|pid| state(*pid).contains(") T "));
    until("a stopped child", is_stopped);
    for n in 1..4 {
        assert!(kill(programs(&home, "stopped")[1]));
        home.await_event("stopped", "recovered", n);
        until("a stopped successor", is_stopped);
    }
    door.open();
    assert_eq!(said(&finish(child)).trim(), said(&native(&["sh", "-c", "echo True; echo True; echo 15"])).trim());
    assert_eq!(std::fs::read_to_string(file).unwrap(), "True\n");
}

#[test]
fn the_end_of_a_parent_is_told_of_whoever_was_killed() {
    outlasts_kills(&["python3", "-c", DEATHS], 6);
}

#[test]
fn who_is_killed_as_its_parent_ends_is_told_of_it_all_the_same() {
    let home = Home::new();
    let command = ["python3", "-c", ORPHANS];
    outlasts(&home, &command, &Harassment { seeds: 3, kills: 30, pause_us: 8_000, choose: youngest });
}

#[test]
fn signals_reach_who_is_being_recovered_once() {
    outlasts_kills(&["python3", "-c", SIGNALLERS], 4);
}

#[test]
fn signals_reach_who_has_another_number_by_now() {
    let home = Home::of(NOBODY);
    let command = ["python3", "-c", SIGNALLERS];
    outlasts(&home, &command, &Harassment { seeds: 1, kills: 3, pause_us: 30_000, choose: any });
}

#[test]
fn a_parent_that_was_killed_while_it_waited_gets_the_status_of_its_child() {
    let home = Home::new();
    let door = home.door();
    let script = format!("({}; exit 7) & wait $!; echo $?", door.wait());
    let child = start(&home, "waiting", &["sh", "-c", &script]);
    until("two programs", || programs(&home, "waiting").len() == 2);
    for _ in 0..3 {
        let recovered = home.status("waiting")["recoveries"].as_u64().unwrap();
        assert!(kill(programs(&home, "waiting")[0]));
        home.await_status("waiting", |status| status["recoveries"].as_u64() > Some(recovered));
    }
    door.open();
    assert_eq!(said(&finish(child)).trim(), said(&native(&["sh", "-c", "echo 7"])).trim());
}
