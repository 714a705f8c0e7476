//! Sessions that daemons make: their leaders have to keep their numbers, and whoever asks has to hear of them.

use super::*;

const TREE: &str = "[[protect]]\nexecutable = \"$BIN/server\"\ntree = true\n";

/// What a daemon is told of its session: after setsid, in children, in what these execute, and with a terminal.
const TELLS: &str = "import errno, os, pty, sys
def is_leader(): return (os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid(), os.getsid(os.getpid()) == os.getsid(0))
def child(work):
    if os.fork() == 0:
        work()
        sys.stdout.flush()
        os._exit(0)
    os.wait()
def tell():
    own = os.getpid()
    print('child', is_leader(), os.getsid(0) == session, os.getpgrp() == session)
    try: os.setpgid(0, 0); print('group', os.getpgrp() == own, os.getsid(0) == session)
    except OSError as e: print(errno.errorcode[e.errno])
def executes():
    os.execv(sys.executable, [sys.executable, '-I', '-c', 'import os; print(\"executed\", os.getsid(0) == %d, os.getpgrp() == %d)' % (session, session)])
def terminal():
    pid, fd = pty.fork()
    if pid == 0:
        terminal = os.open('/dev/tty', os.O_RDWR)
        os.write(1, b'terminal %a %a' % (is_leader(), os.tcgetpgrp(terminal) == os.getpid()))
        os._exit(0)
    print(os.read(fd, 200).decode())
    os.waitpid(pid, 0)
def leader():
    os.setsid()
    print('leader', is_leader())
    try: os.setsid()
    except OSError as e: print(errno.errorcode[e.errno])
if os.fork() == 0:
    leader()
    session = os.getpid()
    for work in [tell, executes, leader, terminal]: child(work)
    name = os.open(sys.argv[1], os.O_RDWR) if len(sys.argv) > 1 else -1
    print('opened', os.isatty(name) if name >= 0 else None)
    sys.stdout.flush()
    os._exit(0)
os.wait()
";

/// Its first process ends; the second one leads a session, and answers each line itself or by one of two children, who live as long.
const SERVES: &str = "import os, sys, time
if os.fork():
    while not os.path.exists(sys.argv[1]): time.sleep(0.005)
    os._exit(0)
os.setsid()
pipes = []
for _ in range(2):
    ask, answer = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(ask[1])
        while line := os.read(ask[0], 100): os.write(answer[1], b'%d %d %s' % (os.getsid(0), os.getpgrp(), line))
        os._exit(0)
    pipes.append((ask[1], answer[0]))
for n, line in enumerate(sys.stdin):
    if n % 3: os.write(pipes[n % 3 - 1][0], line.encode()); print(os.getpid(), os.read(pipes[n % 3 - 1][1], 200).decode().strip(), flush=True)
    else: print(os.getpid(), os.getsid(0), os.getpgrp(), line.strip(), flush=True)
";

/// One that serves, whose first process ends when the door is there; and the number of the one that leads its session.
fn serving(daemon: &Daemon) -> (Conversation, i64) {
    let program = daemon.program("/usr/bin/python3", "server");
    let mut talk = Conversation::with(command(daemon, &program, SERVES).arg(daemon.home.file("door")));
    let leader = ask(&mut talk);
    (talk, leader)
}

/// Whoever answers, all are in the session and in the group of the one that leads it: its number.
fn ask(talk: &mut Conversation) -> i64 {
    let answer = talk.ask("on");
    let numbers: Vec<i64> = answer.split(' ').take(3).map(|number| number.parse().unwrap()).collect();
    assert!(answer.ends_with(" on") && numbers.iter().all(|number| *number == numbers[0]), "{answer}");
    numbers[0]
}

/// The first process ends, and the one that leads the session takes its place.
fn pass_on(daemon: &Daemon) {
    fs::write(daemon.home.file("door"), "").unwrap();
    daemon.home.await_event("server", "passed-on", 1);
}

/// In a session without a terminal.
fn command(daemon: &Daemon, program: &Path, script: &str) -> Command {
    let mut command = daemon.command(program);
    command.args(["-I", "-c", script]);
    // SAFETY: a system call only.
    unsafe { command.pre_exec(|| if libc::setsid() < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }) };
    command
}

#[test]
fn a_daemon_sees_the_sessions_that_it_would_have_seen() {
    let Some(daemon) = Daemon::begin(TREE) else { return };
    let tell = |name: &str| {
        let program = daemon.program("/usr/bin/python3", name);
        let output = command(&daemon, &program, TELLS).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (native, protected) = (tell("native"), tell("server"));
    assert_eq!(native, protected);
    assert!(native.1.contains("terminal (True, True, True) True"), "{native:?}");
    daemon.said("is protected");
}

#[test]
fn who_leads_a_session_keeps_its_number_as_long_as_others_are_in_it() {
    let Some(daemon) = Daemon::begin(TREE) else { return };
    let (mut talk, leader) = serving(&daemon);
    pass_on(&daemon);
    for _ in 0..12 {
        let status =
            daemon.home.await_status("server", |status| status["pid"] == leader && status["protected"] == true);
        assert_eq!(status["degradations"], serde_json::json!([]));
        kill(&status["pid"], libc::SIGKILL);
        assert_eq!(ask(&mut talk), leader);
    }
    let log = daemon.home.events("server");
    assert!(log.contains(&"passed-on".into()) && !log.contains(&"engine-error".into()), "{log:?}");
    assert_eq!(log.iter().filter(|event| *event == "recovered").count(), 12, "{log:?}");
}

/// Whoever started it has killed what it waited for: that is no end of the daemon.
#[test]
fn a_daemon_lives_on_whatever_became_of_who_waited_for_its_first_process() {
    let Some(daemon) = Daemon::begin(TREE) else { return };
    let (mut talk, leader) = serving(&daemon);
    talk.child.kill().unwrap();
    talk.child.wait().unwrap();
    pass_on(&daemon);
    for _ in 0..3 {
        let status =
            daemon.home.await_status("server", |status| status["pid"] == leader && status["protected"] == true);
        kill(&status["pid"], libc::SIGKILL);
        assert_eq!(ask(&mut talk), leader);
    }
}
