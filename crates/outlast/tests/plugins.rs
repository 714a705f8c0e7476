//! Modules that are loaded from files: installed, refused, and protecting real programs through everything that may happen to these.

#[path = "plugins/runtime.rs"]
mod runtime;
mod support;
#[path = "plugins/tutorial.rs"]
mod tutorial;

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Once;
use support::talk::{answers, Talk};
use support::{kill, kill_everything, said, until, Home};

/// A component of the examples.
fn component(name: &str) -> PathBuf {
    static BUILT: Once = Once::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins");
    BUILT.call_once(|| assert!(Command::new(examples.join("build")).status().unwrap().success()));
    examples.join(format!("../../target/plugins/components/{name}.wasm"))
}

fn outlast<'a>(home: &Home, args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = home.outlast(args);
    command.env("OUTLAST_MODULES_DIR", home.file("modules"));
    command
}

fn load(home: &Home, file: &Path, more: &[&str]) -> Output {
    outlast(home, ["module", "load", file.to_str().unwrap()].into_iter().chain(more.iter().copied())).output().unwrap()
}

/// Has a component of the examples loaded, under a name.
fn loaded(home: &Home, component_name: &str, name: &str) {
    let output = load(home, &component(component_name), &["--name", name]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output));
}

fn rows(home: &Home) -> Vec<Value> {
    let output = outlast(home, ["module", "list", "--json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", said(&output)))
}

fn row(home: &Home, name: &str) -> Option<Value> {
    rows(home).into_iter().find(|row| row["name"] == name)
}

/// The program in hangs/answers.c, protected so.
fn begin<'h>(home: &'h Home, options: &[&str]) -> Talk<&'h Home> {
    let mut command = outlast(home, ["run", "--name", "it", "--every", "never", "--retries", "1000"]);
    command.args(options);
    Talk::begin(home, command, &answers(home))
}

const LIMIT: &str = "--module=ahd={\"limit_ms\": 300}";

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn a_module_is_loaded_listed_replaced_and_unloaded() {
    let home = Home::new();
    loaded(&home, "ceiling", "ceiling");
    let (folder, file) = (home.file("modules"), home.file("modules/ceiling.wasm"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    let listed = row(&home, "ceiling").expect("it is listed");
    assert_eq!((&listed["kind"], &listed["what"]), (&"plug-in".into(), &file.to_str().unwrap().into()));
    assert_eq!(row(&home, "crash").expect("as ever")["kind"], "built-in");
    loaded(&home, "hang", "ceiling");
    assert_eq!(fs::read(&file).unwrap(), fs::read(component("hang")).unwrap());
    // Under the name of the file, if no other is given.
    assert!(load(&home, &component("faulty"), &[]).status.success());
    for name in ["faulty", "ceiling"] {
        let unloaded = outlast(&home, ["module", "unload", name]).output().unwrap();
        assert!(unloaded.status.success(), "{}", said(&unloaded));
        assert!(row(&home, name).is_none());
    }
    let again = outlast(&home, ["module", "unload", "ceiling"]).output().unwrap();
    assert_eq!(said(&again), "exit status: 1 |  | outlast: module ceiling: it is not loaded\n");
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn what_is_no_module_is_refused_in_words_and_leaves_nothing() {
    let home = Home::new();
    let good = fs::read(component("ceiling")).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        fs::write(home.file(name), bytes).unwrap();
        home.file(name)
    };
    let long = [&good[..8], &[0; 5 << 20]].concat();
    let cases = [
        (file("text", b"hello"), "no component"),
        (file("half", &good[..good.len() / 2]), "no component"),
        (file("core", b"\0asm\x01\0\0\0"), "outlast-plugin component makes one"),
        (file("other", b"\0asm\x0d\0\x01\0"), "lacks what they are asked for"),
        (file("long", &long), "longer than 4 MiB"),
        (home.file("missing"), "No such file"),
        (home.path().to_path_buf(), "it is no file"),
    ];
    for (path, why) in cases {
        let refused = load(&home, &path, &["--name", "x"]);
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(1) && words.contains(why), "{}", said(&refused));
        assert_eq!(words.lines().count(), 1, "{words}");
    }
    for name in ["hang", "../x", "", ".hidden", "a=b"] {
        let refused = load(&home, &component("ceiling"), &["--name", name]);
        assert!(!refused.status.success() && !refused.stderr.is_empty(), "{name}: {}", said(&refused));
    }
    assert!(rows(&home).iter().all(|row| row["kind"] == "built-in"));
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn a_program_is_not_started_without_a_module_that_it_is_to_have() {
    let home = Home::new();
    loaded(&home, "ceiling", "ceiling");
    let run = |module: &str| {
        let output = outlast(&home, ["run", "--name", "it", "--module", module, "--", "echo", "ran"]).output().unwrap();
        (output.status.success(), said(&output))
    };
    let (_, missing) = run("cieling");
    assert!(missing.contains("module cieling: it is not loaded") && !missing.contains("ran"), "{missing}");
    let (_, refused) = run("ceiling=many");
    assert!(refused.contains("ceiling: settings: a number of threads") && !refused.contains("ran"), "{refused}");
    let (_, built_in) = run("hang");
    assert!(built_in.contains("built in") && !built_in.contains("ran"), "{built_in}");
    fs::set_permissions(home.file("modules/ceiling.wasm"), fs::Permissions::from_mode(0o666)).unwrap();
    let (_, open) = run("ceiling=9");
    assert!(open.contains("others may write to it") && !open.contains("ran"), "{open}");
    fs::set_permissions(home.file("modules/ceiling.wasm"), fs::Permissions::from_mode(0o600)).unwrap();
    let (ran, words) = run("ceiling=9");
    assert!(ran && words.contains("ran"), "{words}");
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn a_program_with_too_many_threads_is_flagged_and_goes_on_from_its_last_commit() {
    let home = Home::new();
    loaded(&home, "ceiling", "ceiling");
    let mut talk = begin(&home, &["--module", "ceiling=1"]);
    talk.ask("one");
    assert_eq!(row(&home, "ceiling").unwrap()["programs"], serde_json::json!(["it"]));
    talk.ask("thread");
    home.await_event("it", "hung", 1);
    talk.may_hang(false);
    talk.ask("more");
    assert!(talk.causes("hung")[0].ends_with("2 threads, and 1 is the most"), "{:#?}", talk.causes("hung"));
    assert_eq!(talk.end().code(), Some(3));
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn the_component_made_of_the_built_in_detector_flags_what_that_one_flags() {
    let mut found = Vec::new();
    for option in ["--hang=300ms", LIMIT] {
        let home = Home::new();
        loaded(&home, "hang", "ahd");
        let mut talk = begin(&home, &[option]);
        talk.ask("one");
        talk.hang("hang");
        talk.ask("two");
        let log = home.log("it");
        let hung = log.iter().find(|entry| entry["event"] == "hung").unwrap();
        let stack = hung["stacks"][0].as_str().unwrap();
        found.push((
            stack.contains("hang+0x") || stack.contains("main+0x"),
            hung["cause"].to_string().contains("0.30 s are enough"),
        ));
        assert_eq!(talk.causes("module-failed"), [""; 0]);
        assert_eq!(talk.end().code(), Some(3));
    }
    assert_eq!(found, [(true, true); 2]);
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn a_module_protects_a_program_also_after_its_supervisor_died_and_after_everything_did() {
    let home = Home::new();
    loaded(&home, "hang", "ahd");
    let mut talk = begin(&home, &[LIMIT]);
    talk.ask("one");
    let supervisor = home.await_protected("it")["supervisor"].clone();
    kill(&supervisor, libc::SIGKILL);
    home.await_status("it", |status| status["protected"] == true && status["supervisor"] != supervisor);
    talk.hang("hang");
    // The shell of a person whose supervisor was killed sees that; the program's pipes are as they were.
    talk.ask("two");
    // What was installed is gone, and so is the module when another one takes over; the program is not.
    let unloaded = outlast(&home, ["module", "unload", "ahd"]).output().unwrap();
    assert!(unloaded.status.success());
    let supervisor = home.await_protected("it")["supervisor"].clone();
    assert_eq!(row(&home, "ahd").unwrap()["kind"], "unloaded");
    kill(&supervisor, libc::SIGKILL);
    home.await_status("it", |status| status["protected"] == true && status["supervisor"] != supervisor);
    home.await_event("it", "module-failed", 1);
    assert!(talk.causes("module-failed")[0].contains("ahd: it is not loaded"), "{:?}", talk.causes("module-failed"));
    talk.ask("three");
    loaded(&home, "hang", "ahd");
    kill_everything(&home.await_protected("it"));
    drop(talk);
    let mut resumed = outlast(&home, ["resume", "it"]).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    until("a resume", || home.events("it").contains(&"resumed".into()));
    assert_eq!(resumed.wait().unwrap().code(), Some(3));
    assert_eq!(home.events("it").iter().filter(|event| *event == "module-failed").count(), 1, "{:#?}", home.log("it"));
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn another_outlast_that_takes_over_has_the_module_as_well() {
    let home = Home::new();
    loaded(&home, "hang", "ahd");
    let mut talk = begin(&home, &[LIMIT]);
    talk.ask("one");
    home.await_protected("it");
    // By another process, so that no test has it open for writing.
    let new = home.file("outlast");
    assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_outlast")).arg(&new).status().unwrap().success());
    let upgraded = home.outlast(["upgrade", "it", "--binary", new.to_str().unwrap()]).output().unwrap();
    assert!(upgraded.status.success(), "{}", said(&upgraded));
    home.await_event("it", "supervisor-upgraded", 1);
    talk.hang("hang");
    talk.ask("two");
    assert_eq!(talk.causes("module-failed"), [""; 0]);
    assert_eq!(talk.end().code(), Some(3));
}

/// What an exec of a process changes, and nothing else does.
fn random_of(pid: &Value) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/auxv")).unwrap()
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn a_module_that_fails_in_any_way_is_unloaded_while_its_program_and_its_supervisor_go_on() {
    let home = Home::new();
    loaded(&home, "faulty", "faulty");
    for way in ["loop", "fill", "flood", "trap", "wild", "deep", "chatter"] {
        let module = format!("--module=faulty=looks third {way}");
        let mut talk = begin(&home, &[&module, "--hang=300ms"]);
        talk.ask("one");
        let supervisor = home.await_protected("it")["supervisor"].clone();
        let before = random_of(&supervisor);
        home.await_event("it", "module-failed", 4);
        let failures = talk.causes("module-failed");
        assert_eq!(failures.len(), 4, "{way}: {failures:#?}");
        assert!(failures.iter().all(|failure| failure.starts_with("faulty: it ")), "{way}: {failures:#?}");
        assert!(failures[3].ends_with("; it is not loaded any more"), "{way}: {failures:#?}");
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        talk.ask("two");
        // Other modules, too, are as they were.
        talk.hang("hang");
        assert_eq!(
            (home.status("it")["supervisor"].clone(), random_of(&supervisor)),
            (supervisor.clone(), before),
            "{way}"
        );
        assert_eq!(talk.end().code(), Some(3));
    }
}

/// Deaths while a component is told of deaths, and fails at every third: what the program says is what it would have said.
#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn a_program_that_is_killed_again_and_again_while_its_module_fails_says_what_it_would_have_said() {
    let home = Home::new();
    loaded(&home, "faulty", "faulty");
    let mut talk = begin(&home, &["--module=faulty=third trap"]);
    for n in 1..=40 {
        talk.ask(&format!("line {n}"));
        kill(&home.await_protected("it")["pid"], libc::SIGKILL);
        home.await_event("it", "recovered", n);
    }
    let (failures, said) = (talk.causes("module-failed"), talk.causes("module-said"));
    assert_eq!(failures.len(), 4, "{failures:#?}");
    assert!(!said.is_empty() && said.iter().all(|what| what.starts_with("faulty: recovered at ")), "{said:#?}");
    assert_eq!(talk.end().code(), Some(3));
}

fn lives(pid: &Value) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['R', 'S', 'D', 't', 'T']))
}

/// Program, supervisor and anchor, two at once now and then, while one component hangs at every third look and another one looks on.
#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn whatever_is_killed_while_modules_fail_nobody_outside_can_tell() {
    const LINES: u32 = 400;
    let script = format!("import time\nfor n in range({LINES}): print(n, flush=True); time.sleep(0.005)");
    let expected: String = (0..LINES).map(|n| format!("{n}\n")).collect();
    for seed in 1..=6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let home = Home::new();
        loaded(&home, "faulty", "faulty");
        loaded(&home, "hang", "ahd");
        let ways = ["loop", "trap", "flood", "fill"];
        let faulty = format!("--module=faulty=looks third {}", ways[random.usize(0..ways.len())]);
        let mut command = outlast(&home, ["run", "--name", "it", "--retries", "1000", &faulty, LIMIT, "--"]);
        let mut child = command.args(["/usr/bin/python3", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut out, &mut text).map(|_| text)
        });
        home.await_protected("it");
        let mut kills = 0;
        while kills < 12 {
            std::thread::sleep(std::time::Duration::from_millis(random.u64(0..120)));
            let mut status = Value::Null;
            // Two at once are enough: of three there is nothing left but what a person resumes.
            until("all three live, or the program's end", || {
                let _ = child.try_wait();
                status = home.status("it");
                reader.is_finished() || ["pid", "supervisor", "anchor"].iter().all(|who| lives(&status[*who]))
            });
            if reader.is_finished() {
                break;
            }
            let first = random.usize(0..3);
            let second = (random.u8(..) < 64).then(|| (first + random.usize(1..3)) % 3);
            for victim in [Some(first), second].into_iter().flatten() {
                kill(&status[["pid", "supervisor", "anchor"][victim]], libc::SIGKILL);
                kills += 1;
            }
        }
        let text = reader.join().unwrap().unwrap();
        assert!(text == expected, "seed {seed}, {kills} kills: {text:?} {:#?}", home.log("it"));
        let _ = child.wait();
    }
}

/// A server in Python that takes three clients, and ends when its input does.
const SERVER: &str = "import socket, sys
server = socket.create_server(('127.0.0.1', 0))
print(server.getsockname()[1], flush=True)
clients = [server.accept()[0] for _ in range(3)]
sys.stdin.read()";

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn a_module_is_told_of_connections_and_asks_who_they_are() {
    let home = Home::new();
    loaded(&home, "audience", "audience");
    let mut command = outlast(&home, ["run", "--name", "it", "--module", "audience=2", "python3", "-c", SERVER]);
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let port: u16 = port.trim().parse().unwrap();
    let connect = || std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let _two = [connect(), connect()];
    kill(&home.status("it")["pid"], libc::SIGKILL);
    let _third = connect();
    let told = "audience: 3 clients, and 2 are the most: 3 from 127.0.0.1";
    until("the module says who they are", || home.log("it").iter().any(|event| event["cause"] == told));
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}
