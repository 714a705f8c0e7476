//! Programs that policies designate are protected, whoever starts them and however; others are left alone.

#[path = "daemon/life.rs"]
mod life;
#[path = "daemon/running.rs"]
mod running;
#[path = "daemon/sessions.rs"]
mod sessions;
#[path = "daemon/watch.rs"]
mod watch;

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use support::{kill, said, until, Home};
use watch::{spawn, Conversation, Daemon};

const SHELL: &str = "/usr/bin/dash";
const SERVER: &str = "[[protect]]\nexecutable = \"$BIN/server\"\ncommit = \"visible\"\n";
/// Answers each line with its number.
const COUNTS: &str = "i=0; while read -r line; do i=$((i+1)); echo $i $line; done; exit 3";

/// The name of the program that a process runs.
fn runs(pid: u32) -> String {
    let path = fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    path.file_name().unwrap().to_str().unwrap().into()
}

#[test]
fn a_designated_program_outlasts_its_death_as_if_it_had_been_started_with_outlast() {
    let Some(daemon) = Daemon::begin(SERVER) else { return };
    let server = daemon.program(SHELL, "server");
    let mut talk = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    assert_eq!(talk.ask("one"), "1 one");
    for n in 2..12 {
        let status = daemon.home.await_protected("server");
        assert_eq!(status["supervisor"], talk.child.id(), "who started it has the supervisor as a child");
        kill(&status["pid"], libc::SIGKILL);
        assert_eq!(talk.ask("on"), format!("{n} on"));
    }
    let place = daemon.home.file("policies/a.toml");
    daemon.said(&format!("process {} is protected, by {}:1", talk.child.id(), place.display()));
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
fn a_program_sees_what_it_would_have_seen() {
    const TELLS: &str = "import os, signal, sys
print(sys.argv, os.environ.get('NAME'), os.getcwd(), os.umask(0))
print(sorted(os.environ), os.readlink('/proc/self/fd/9'), open('/proc/self/comm').read())
print(signal.getsignal(signal.SIGUSR1), signal.pthread_sigmask(signal.SIG_BLOCK, []), os.getpriority(os.PRIO_PROCESS, 0))
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGTERM)";
    let Some(daemon) = Daemon::begin(SERVER) else { return };
    let tell = |name: &str| {
        let program = daemon.program("/usr/bin/python3", name);
        let mut command = daemon.command(&program);
        let arguments = ["-I", "-c", TELLS, "", "--", "-x", "ä\n\"'"];
        command.arg0("python").args(arguments).env("NAME", "val\nue").current_dir("/usr").stderr(Stdio::inherit());
        // SAFETY: system calls only.
        let command = unsafe {
            command.pre_exec(|| {
                let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
                libc::dup2(null, 9);
                libc::umask(0o31);
                libc::signal(libc::SIGUSR1, libc::SIG_IGN);
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, libc::SIGUSR2);
                libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
                libc::setpriority(libc::PRIO_PROCESS, 0, 5);
                Ok(())
            })
        };
        let output = command.stdin(Stdio::null()).output().unwrap();
        (output.status.signal(), String::from_utf8(output.stdout).unwrap().replace(name, "NAME"))
    };
    let (native, protected) = (tell("native"), tell("server"));
    assert_eq!(native, protected);
    assert_eq!(native.0, Some(libc::SIGTERM));
    daemon.said("is protected");
}

#[test]
fn a_program_is_called_as_it_was_executed_also_after_its_death() {
    const TELLS: &str = "import ctypes, struct, sys
words = struct.unpack('64Q', open('/proc/self/auxv', 'rb').read().ljust(512, b'\\0')[:512])
told = dict(zip(words[::2], words[1::2]))[31]
for line in sys.stdin: print(open('/proc/self/comm').read().strip(), ctypes.string_at(told), flush=True)
";
    let Some(daemon) = Daemon::begin("[[protect]]\nexecutable = \"$BIN/se*\"\n") else { return };
    let python = daemon.program("/usr/bin/python3", "server");
    std::os::unix::fs::symlink("server", daemon.home.file("bin/link-to-it")).unwrap();
    let script = daemon.script("serve-everything-there-is", &format!("#!/usr/bin/python3 -I\n{TELLS}"));
    for (program, arguments) in
        [(python, &["-I", "-c", TELLS][..]), (daemon.home.file("bin/link-to-it"), &["-I", "-c", TELLS]), (script, &[])]
    {
        let called: String = program.file_name().unwrap().to_str().unwrap().chars().take(15).collect();
        let mut talk = Conversation::with(daemon.command(&program).args(arguments));
        let first = talk.ask("a");
        assert_eq!((first.split(' ').next(), runs(talk.child.id()).as_str()), (Some(&called[..]), "outlast"));
        // Of a script this is the interpreter's: the arguments begin with it.
        assert!(first.contains(program.to_str().unwrap()) || called.starts_with("serve-"), "{first}");
        let name = if called.starts_with("serve-") { "serve-everything-there-is" } else { "server" };
        kill(&daemon.home.await_protected(name)["pid"], libc::SIGKILL);
        assert_eq!(talk.ask("b"), first);
        assert_eq!(talk.end().code(), Some(0));
    }
}

#[test]
fn a_script_is_designated_by_its_own_name() {
    let Some(daemon) = Daemon::begin("[[protect]]\nexecutable = \"$BIN/serve-*\"\n") else { return };
    daemon.script("serve-all", &format!("#!{SHELL} -u\n{COUNTS}"));
    let mut talk = Conversation::with(daemon.command(Path::new("./serve-all")).current_dir(daemon.home.file("bin")));
    assert_eq!(talk.ask("a"), "1 a");
    kill(&daemon.home.await_protected("serve-all")["pid"], libc::SIGKILL);
    assert_eq!(talk.ask("b"), "2 b");
}

#[test]
fn a_script_begins_as_ever_where_only_its_interpreter_is_designated() {
    let Some(daemon) = Daemon::begin("[[protect]]\nexecutable = \"$BIN/shell\"\n") else { return };
    let shell = daemon.program(SHELL, "shell");
    let script = daemon.script("script", &format!("#!{}\n{COUNTS}", shell.display()));
    let mut talk = Conversation::with(&mut daemon.command(&script));
    assert_eq!((talk.ask("a"), runs(talk.child.id())), ("1 a".into(), "shell".into()));
    let mut talk = Conversation::with(daemon.command(&shell).arg(&script));
    assert_eq!((talk.ask("a"), runs(talk.child.id())), ("1 a".into(), "outlast".into()));
}

#[test]
fn a_daemon_that_is_stopped_holds_nobody_up_for_long() {
    let Some(mut daemon) = Daemon::begin(SERVER) else { return };
    let server = daemon.program(SHELL, "server");
    daemon.signal(libc::SIGSTOP);
    // An execution waits for the daemon; the kernel ends that.
    let mut talk = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    assert_eq!((talk.ask("a"), runs(talk.child.id())), ("1 a".into(), "server".into()));
    assert_eq!(daemon.ended().signal(), Some(libc::SIGKILL));
}

#[test]
fn a_designated_program_runs_also_where_outlast_cannot() {
    let Some(daemon) = Daemon::begin(SERVER) else { return };
    let server = daemon.program(SHELL, "server");
    let mut command = daemon.command(&server);
    command.env("OUTLAST_STATE_DIR", "/proc/no/such/folder").args(["-c", "echo here; exit 3"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(3), &b"here\n"[..]), "{}", said(&output));
    assert!(said(&output).contains("it runs unprotected"), "{}", said(&output));
}

#[test]
fn a_file_that_was_put_in_the_place_of_the_one_that_began_is_not_executed() {
    let home = Home::new();
    let [device, inode] = [|meta: &fs::Metadata| meta.dev(), |meta: &fs::Metadata| meta.ino()]
        .map(|of| of(&fs::metadata(SHELL).unwrap()).to_string());
    for (file, status) in [(SHELL, 3), ("/usr/bin/env", 126)] {
        let mut command =
            home.outlast(["run", "--begun", file, &device, &inode, "/opt/server", "server", "--", "server"]);
        let output = command.args(["-c", "exit 3"]).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
    }
}

#[test]
fn others_are_left_alone() {
    let policy = "[[leave]]\nexecutable = \"$BIN/server\"\nuser = 65534\n[[protect]]\nexecutable = \"$BIN/server\"\n";
    let Some(daemon) = Daemon::begin("[[protect]]\nexecutable = \"$BIN/none\"\n") else { return };
    daemon.write("a.toml", policy);
    daemon.signal(libc::SIGHUP);
    daemon.said("2 policies");
    let (server, other) = (daemon.program(SHELL, "server"), daemon.program(SHELL, "other"));
    let mut talk = Conversation::with(daemon.command(&other).args(["-c", COUNTS]));
    assert_eq!((talk.ask("a"), runs(talk.child.id())), ("1 a".into(), "other".into()));
    // Of the same file, but another user's: it was traced, and let go.
    let mut talk = Conversation::with(daemon.command(&server).args(["-c", COUNTS]).uid(65534).gid(65534));
    assert_eq!((talk.ask("a"), runs(talk.child.id())), ("1 a".into(), "server".into()));
    let mut talk = Conversation::with(daemon.command(&server).args(["-c", COUNTS]));
    assert_eq!((talk.ask("a"), runs(talk.child.id())), ("1 a".into(), "outlast".into()));
}

#[test]
fn a_program_with_privileges_of_its_file_keeps_them_and_runs_unprotected() {
    let Some(daemon) = Daemon::begin("[[protect]]\nexecutable = \"$BIN/*\"\n") else { return };
    let program = daemon.program("/usr/bin/cat", "privileged");
    let secret = daemon.home.file("secret");
    fs::write(&secret, "secret").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
    let output = daemon.command(&program).arg(&secret).uid(65534).gid(65534).output().unwrap();
    assert_eq!(output.stdout, b"secret", "{}", said(&output));
    daemon.said("runs unprotected, although");
}

#[test]
fn an_execution_that_fails_fails_as_ever() {
    let Some(daemon) = Daemon::begin("[[protect]]\nexecutable = \"$BIN/*\"\n") else { return };
    let mut path = daemon.home.file("bin/broken");
    for (text, error) in [("#!/no/such/interpreter\n", libc::ENOENT), ("\x7fELFnonsense", libc::ENOEXEC)] {
        path = daemon.script("broken", text);
        let refused = daemon.command(&path).spawn().expect_err("it cannot be executed");
        assert_eq!(refused.raw_os_error(), Some(error));
    }
    // A process that goes on after such an execution is not kept from its next one.
    let script = format!("{} 2>/dev/null; exec {} -c 'echo next'", path.display(), SHELL);
    let shell = daemon.program(SHELL, "shell");
    let output = daemon.command(&shell).args(["-c", &script]).output().unwrap();
    assert_eq!(output.stdout, b"next\n", "{}", said(&output));
}

#[test]
fn a_thread_that_executes_takes_its_process_with_it() {
    const EXECUTES: &str = "import os, sys, threading
threading.Thread(target=lambda: os.execv(sys.argv[1], ['server', '-c', sys.argv[2]])).start()
threading.Event().wait()";
    let Some(daemon) = Daemon::begin(SERVER) else { return };
    let server = daemon.program(SHELL, "server");
    let mut command = daemon.command(Path::new("/usr/bin/python3"));
    let mut talk = Conversation::with(command.args(["-c", EXECUTES]).arg(&server).arg(COUNTS));
    assert_eq!(talk.ask("a"), "1 a");
    kill(&daemon.home.await_protected("server")["pid"], libc::SIGKILL);
    assert_eq!((talk.ask("b"), runs(talk.child.id())), ("2 b".into(), "outlast".into()));
}

#[test]
fn many_begin_at_once() {
    let Some(daemon) = Daemon::begin(SERVER) else { return };
    let server = daemon.program(SHELL, "server");
    let start = |n: usize| daemon.command(&server).args(["-c", &format!("echo {n}")]).stdout(Stdio::piped()).spawn();
    let children: Vec<_> = (0..40).map(|n| start(n).unwrap()).collect();
    for (n, child) in children.into_iter().enumerate() {
        let output = support::finish(child);
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{n}\n"), "{}", said(&output));
    }
    until("all of them protected", || daemon.log().matches("is protected").count() == 40);
}
