//! Campaigns against small programs: faults whose effect is known come out as what they are.

#[path = "inject/outcomes.rs"]
mod outcomes;
mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::{finish, said, until, Home};

/// The target in C of these tests.
fn target(home: &Home) -> PathBuf {
    let program = home.file("target");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inject/target.c");
    let built =
        Command::new("gcc").args(["-O1", "-Wall", "-pthread", "-o"]).arg(&program).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
    program
}

const BOTH: &str = "[[setting]]\nname = 'native'\n[[setting]]\nname = 'protected'\nprotected = true\n";

/// A campaign file in the home.
fn campaign(home: &Home, name: &str, text: &str) -> PathBuf {
    let file = home.file(&format!("{name}.toml"));
    std::fs::write(&file, format!("name = '{name}'\n{text}")).unwrap();
    file
}

fn injects(home: &Home, file: &Path) -> Output {
    let output = home.outlast(["inject".as_ref(), file.as_os_str()]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    output
}

fn report(home: &Home, file: &Path, how: &str) -> Output {
    let folder = file.with_extension("results");
    let output = home.outlast(["report".as_ref(), folder.as_os_str(), how.as_ref()]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    output
}

/// What hangs takes as long; what does not must not be taken for that on a busy machine.
const HANGS: u32 = 8;
const ENDS: u32 = 40;

/// All experiments of a campaign that is run here.
fn experiments(home: &Home, name: &str, command: &[&str], timeout: u32, faults: &str) -> Vec<Value> {
    let text =
        format!("count = 1\nreferences = 2\ntimeout = '{timeout}s'\n[target]\ncommand = {command:?}\n{BOTH}{faults}");
    let file = campaign(home, name, &text);
    injects(home, &file);
    let all: Value = serde_json::from_slice(&report(home, &file, "--json").stdout).unwrap();
    all["experiments"].as_array().unwrap().clone()
}

/// What became of one fault at a named point of the target in C, by itself and protected.
fn outcomes(name: &str, argument: Option<&str>, timeout: u32, fault: &str) -> (String, String, Vec<Value>) {
    let home = Home::new();
    let program = target(&home);
    let command: Vec<&str> = [program.to_str().unwrap()].into_iter().chain(argument).collect();
    let all = experiments(&home, name, &command, timeout, &format!("[[fault]]\n{fault}\n"));
    let of = |setting: &str| {
        let one = all.iter().find(|e| e["setting"] == setting).unwrap_or_else(|| panic!("{all:#?}"));
        one["outcome"].as_str().unwrap().to_string()
    };
    (of("native"), of("protected"), all)
}

fn come_out(name: &str, argument: Option<&str>, fault: &str, native: &str, protected: &str) -> Vec<Value> {
    let timeout = if [native, protected].contains(&"hang") { HANGS } else { ENDS };
    let (seen_native, seen_protected, all) = outcomes(name, argument, timeout, fault);
    assert_eq!((seen_native.as_str(), seen_protected.as_str()), (native, protected), "{all:#?}");
    assert!(all.iter().all(|e| e["struck"] == true), "{all:#?}");
    all
}

#[test]
fn a_bit_of_a_value_that_is_printed_is_a_fail_silence_violation() {
    let fault = "kind = 'memory'\nobject = 'value'\nbit = 3\nsymbol = 'show'\nnth = 2";
    let all = come_out("value", None, fault, "fail-silence", "fail-silence");
    assert!(all.iter().all(|e| e["activated"] == true), "{all:#?}");
}

#[test]
fn a_value_that_nobody_reads_any_more_is_not_activated() {
    let fault = "kind = 'memory'\nobject = 'value'\nbit = 3\nsymbol = 'exit'";
    come_out("unread", None, fault, "not-activated", "not-activated");
}

#[test]
fn a_fatal_signal_is_a_crash_and_under_outlast_nothing() {
    let fault = "kind = 'signal'\nsignal = 'SIGSEGV'\nsymbol = 'show'\nnth = 2";
    let all = come_out("segv", None, fault, "crash", "correct");
    let protected = all.iter().find(|e| e["setting"] == "protected").unwrap();
    assert!(protected["outlast"]["recoveries"].as_u64() >= Some(1), "{protected:#}");
    assert!(protected["outlast"]["detected_us"].as_f64().is_some(), "{protected:#}");
}

#[test]
fn a_kill_is_recovered_from() {
    let all =
        come_out("kill", None, "kind = 'signal'\nsignal = 'SIGKILL'\nsymbol = 'show'\nnth = 3", "crash", "correct");
    assert!(all.iter().any(|e| e["outlast"]["recoveries"] == 1), "{all:#?}");
}

#[test]
fn a_program_that_jumps_to_itself_hangs() {
    come_out("loop", None, "kind = 'loop'\nsymbol = 'show'\nnth = 2", "hang", "hang");
}

#[test]
fn a_write_that_fails_is_the_programs_own_error() {
    let all = come_out("write", None, "kind = 'failed-call'\ncall = 'write'\nnth = 2\nerror = 'EIO'", "error", "error");
    assert!(all.iter().all(|e| e["end"] == "exit 7"), "{all:#?}");
}

#[test]
fn a_write_that_is_short_is_the_programs_own_error() {
    let all = come_out("short", None, "kind = 'short-call'\ncall = 'write'\nnth = 3", "error", "error");
    assert!(all.iter().all(|e| e["end"] == "exit 7"), "{all:#?}");
}

#[test]
fn a_slow_call_is_seen_by_nobody() {
    come_out("slow", None, "kind = 'slow-call'\ncall = 'write'\nnth = 2\ndelay = '50ms'", "correct", "correct");
}

#[test]
fn threads_go_on_after_one_of_them_was_struck() {
    let fault = "kind = 'slow-call'\ncall = 'mprotect'\nnth = 7\ndelay = '20ms'";
    come_out("slow-threads", Some("threads"), fault, "correct", "correct");
}

#[test]
fn a_lock_that_is_never_released_is_a_hang() {
    come_out("lock", Some("threads"), "kind = 'skip'\nsymbol = 'pthread_mutex_unlock'\nnth = 100", "hang", "hang");
}

#[test]
fn a_branch_that_goes_the_other_way_strikes_the_programs_own_code() {
    let (_, _, all) = outcomes("branch", None, HANGS, "kind = 'branch'\nsymbol = 'show'\nnth = 2");
    assert!(all.iter().all(|e| e["struck"] == true && e["place"] == "program"), "{all:#?}");
}

#[test]
fn a_descriptor_that_is_closed_is_missed() {
    let fault = "kind = 'descriptor'\nsymbol = 'show'\nnth = 2";
    let (_, _, all) = outcomes("descriptor", None, HANGS, fault);
    assert!(all.iter().all(|e| e["struck"] == true), "{all:#?}");
}

#[test]
fn a_program_that_is_stopped_hangs() {
    come_out("stop", None, "kind = 'signal'\nsignal = 'SIGSTOP'\nsymbol = 'show'\nnth = 2", "hang", "hang");
}

#[test]
fn a_thread_that_ends_too_soon_is_missed_in_the_sum() {
    let (native, _, all) = outcomes("thread", Some("threads"), ENDS, "kind = 'thread'\nsymbol = 'count'\nnth = 3");
    assert_eq!(native, "fail-silence", "{all:#?}");
    assert!(all.iter().all(|e| e["struck"] == true), "{all:#?}");
}

/// Threads that come to the same place at the same time are all stopped there, and the program is let go before some have been told of it.
#[test]
fn the_injectors_own_traps_end_nobody() {
    let home = Home::new();
    let command = [target(&home).to_str().unwrap().to_string(), "threads".into()];
    let text = format!(
        "count = 150\nreferences = 2\ntimeout = '8s'\n[target]\ncommand = {command:?}\n[[setting]]\nname = 'native'\n\
         [[fault]]\nkind = 'thread'\nsymbol = 'count'\nnth = 3\n"
    );
    let file = campaign(&home, "traps", &text);
    injects(&home, &file);
    let all: Value = serde_json::from_slice(&report(&home, &file, "--json").stdout).unwrap();
    let trapped = all["experiments"].as_array().unwrap().iter().filter(|e| e["end"] == "SIGTRAP").count();
    assert_eq!(trapped, 0, "{all:#}");
}

/// What is harmed writes no name for its client, and ends as if all were well: only the client can tell.
#[test]
fn what_only_a_client_sees_is_an_error() {
    let home = Home::new();
    let script = "import os\nopen('made', 'w').write('x')\ntry:\n  os.rename('made', 'ready')\nexcept OSError:\n  open('over', 'w')\n";
    // It gives up when it can know that nothing comes: on a busy machine that takes its time.
    let client = "until [ -e ready ]; do [ ! -e over ] || exit 5; sleep 0.01; done; cat ready";
    let text = format!(
        "count = 1\n[target]\ncommand = ['/usr/bin/python3', '-c', {script:?}]\ndrive = ['sh', '-c', {client:?}]\n{BOTH}\
         [[fault]]\nkind = 'failed-call'\ncall = 'rename'\nerror = 'EIO'\n"
    );
    let file = campaign(&home, "client", &text);
    injects(&home, &file);
    let all: Value = serde_json::from_slice(&report(&home, &file, "--json").stdout).unwrap();
    let experiments = all["experiments"].as_array().unwrap();
    assert!(experiments.iter().all(|e| e["outcome"] == "error" && e["end"] == "exit 0"), "{all:#}");
}

/// Nobody is left to end it.
#[test]
fn a_target_that_its_client_has_given_up_is_ended_and_an_error() {
    let home = Home::new();
    let script = "import os, time\nopen('made', 'w').write('x')\ntry:\n  os.rename('made', 'ready')\nexcept OSError:\n  open('over', 'w'); time.sleep(600)\n";
    let client = "until [ -e ready ]; do [ ! -e over ] || exit 5; sleep 0.01; done";
    let text = format!(
        "count = 1\ntimeout = '60s'\n[target]\ncommand = ['/usr/bin/python3', '-c', {script:?}]\ndrive = ['sh', '-c', {client:?}]\n\
         {BOTH}[[fault]]\nkind = 'failed-call'\ncall = 'rename'\nerror = 'EIO'\n"
    );
    let file = campaign(&home, "deserted", &text);
    injects(&home, &file);
    let all: Value = serde_json::from_slice(&report(&home, &file, "--json").stdout).unwrap();
    let experiments = all["experiments"].as_array().unwrap();
    let is_deserted = |e: &Value| {
        e["outcome"] == "error" && e["end"] == "did not end" && e["objection"] == "its client failed, and it went on"
    };
    assert!(experiments.len() == 2 && experiments.iter().all(is_deserted), "{all:#}");
}

#[test]
fn a_check_command_decides_where_output_varies() {
    let home = Home::new();
    let script = "import os\nopen('made', 'w').write(str(os.getpid()))\ntry:\n  os.rename('made', 'ready')\nexcept OSError:\n  pass\n";
    for (kind, outcome) in [("slow-call", "correct"), ("failed-call", "fail-silence")] {
        let text = format!(
            "count = 1\n[target]\ncommand = ['/usr/bin/python3', '-c', {script:?}]\ncheck = ['test', '-s', 'ready']\n\
             [[setting]]\nname = 'native'\n[[fault]]\nkind = '{kind}'\ncall = 'rename'\n"
        );
        let file = campaign(&home, kind, &text);
        injects(&home, &file);
        let all: Value = serde_json::from_slice(&report(&home, &file, "--json").stdout).unwrap();
        assert_eq!(all["experiments"][0]["outcome"], outcome, "{all:#}");
    }
}

#[test]
fn results_do_not_go_to_a_folder_that_others_may_write_to() {
    let home = Home::new();
    let file = several(&home, "shared", 1);
    let folder = file.with_extension("results");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let output = home.outlast(["inject".as_ref(), file.as_os_str()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("nobody else may write"), "{}", said(&output));
}

/// What real programs do, without a fault that strikes: nothing differs, and it is told that nothing struck.
#[test]
fn a_point_that_is_never_reached_is_not_activated() {
    let home = Home::new();
    let input = home.file("input");
    std::fs::write(&input, (0..5_000).map(|i| format!("{}\n", i * 7919 % 5000)).collect::<String>()).unwrap();
    let input = input.to_str().unwrap();
    let programs: [&[&str]; 4] = [
        &["/usr/bin/sort", input],
        &["/usr/bin/sha256sum", input],
        &["/bin/gzip", "-nc", input],
        &["/usr/bin/python3", "-c", "print(sum(range(1000)))"],
    ];
    for (number, command) in programs.into_iter().enumerate() {
        let fault = "[[fault]]\nkind = 'failed-call'\ncall = 'rename'\nerror = 'EIO'\n";
        let all = experiments(&home, &format!("never-{number}"), command, ENDS, fault);
        assert!(all.iter().all(|e| e["outcome"] == "not-activated" && e["struck"] == false), "{all:#?}");
    }
}

const SEVERAL: &str = "[[fault]]\nkind = 'memory'\nobject = 'value'\nsymbol = 'show'\nnth = [1, 3]\n\
    [[fault]]\nkind = 'failed-call'\ncall = 'write'\nnth = [1, 3]\nerror = 'EIO'\n";

fn several(home: &Home, name: &str, count: u32) -> PathBuf {
    let program = target(home);
    let text = format!("count = {count}\nseed = 11\njobs = 2\n[target]\ncommand = [{program:?}]\n{BOTH}{SEVERAL}");
    campaign(home, name, &text)
}

#[test]
fn the_same_seed_gives_the_same_faults_and_outcomes() {
    let home = Home::new();
    let all: Vec<Value> = ["one", "two"]
        .into_iter()
        .map(|name| {
            let file = several(&home, name, 5);
            injects(&home, &file);
            let all: Value = serde_json::from_slice(&report(&home, &file, "--json").stdout).unwrap();
            let telling =
                |e: &Value| ["number", "setting", "kind", "point", "outcome", "end"].map(|key| e[key].clone());
            Value::from(
                all["experiments"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|e| Value::from(telling(e).to_vec()))
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    assert_eq!(all[0], all[1]);
}

/// Lines of results so far.
fn lines(file: &Path) -> usize {
    let text = std::fs::read_to_string(file.with_extension("results").join("results.jsonl")).unwrap_or_default();
    text.matches('\n').count()
}

fn interrupted_by(signal: i32) {
    // So many that a busy machine has not done all of them before they are interrupted.
    const COUNT: u32 = 40;
    const LINES: usize = 1 + 2 * COUNT as usize;
    let home = Home::new();
    let whole = several(&home, "whole", COUNT);
    injects(&home, &whole);
    let file = several(&home, "cut", COUNT);
    let child = home
        .outlast(["inject".as_ref(), file.as_os_str()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("some results", || lines(&file) > 4);
    let note = file.with_extension("results").join("house");
    let house = std::fs::read_to_string(&note).unwrap();
    // SAFETY: plain system call on a child that is not reaped.
    unsafe { libc::kill(child.id() as i32, signal) };
    let output = finish(child);
    assert!(!output.status.success(), "it was over before: {}", said(&output));
    assert!(lines(&file) < LINES, "nothing was left to do");
    injects(&home, &file);
    let rows = |file| String::from_utf8(report(&home, file, "--csv").stdout).unwrap();
    assert_eq!(rows(&whole), rows(&file));
    assert_eq!(lines(&file), LINES);
    assert!(!note.exists() && !Path::new(&house).exists(), "{house} is left");
}

#[test]
fn a_campaign_whose_injector_is_killed_goes_on_to_the_same_table() {
    interrupted_by(libc::SIGKILL);
}

#[test]
fn a_campaign_that_is_interrupted_goes_on_to_the_same_table() {
    interrupted_by(libc::SIGINT);
}

/// Nothing of it needs a privilege.
#[test]
fn an_ordinary_user_injects_faults_into_programs_of_theirs() {
    const NOBODY: u32 = 65534;
    // SAFETY: plain system call.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: all other tests run as an ordinary user already");
        return;
    }
    let home = Home::new();
    let file = several(&home, "user", 4);
    let results = home.file("user.results");
    std::fs::create_dir(&results).unwrap();
    std::os::unix::fs::chown(&results, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut command = home.outlast_by(NOBODY, ["inject".as_ref(), file.as_os_str()]);
    let output = command.env_remove("OUTLAST_STATE_DIR").current_dir("/").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let all: Value = serde_json::from_slice(&report(&home, &file, "--json").stdout).unwrap();
    let protected = all["experiments"].as_array().unwrap().iter().filter(|e| e["setting"] == "protected");
    let told = protected.map(|e| (e["struck"].clone(), e["outlast"]["protected"].clone()));
    assert!(told.clone().count() == 4 && told.clone().all(|both| both == (true.into(), true.into())), "{all:#}");
}

#[test]
fn a_campaign_that_was_changed_is_refused() {
    let home = Home::new();
    let file = several(&home, "changed", 1);
    injects(&home, &file);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("seed = 11", "seed = 12")).unwrap();
    let output = home.outlast(["inject".as_ref(), file.as_os_str()]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("another campaign file"), "{}", said(&output));
}

#[test]
fn what_is_wrong_with_a_campaign_is_said_with_file_and_line() {
    let home = Home::new();
    let file = campaign(&home, "wrong", "count = 1\n[target]\ncommand = ['true']\n[[setting]]\nname = 'native'\n[[fault]]\nkind = 'signal'\nsignal = 'SIGNOT'\n");
    let output = home.outlast(["inject".as_ref(), file.as_os_str()]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let said = said(&output);
    assert!(said.contains("wrong.toml:7: no signal \"SIGNOT\""), "{said}");
}

#[test]
fn damaged_results_are_refused_and_a_line_that_was_cut_short_is_done_again() {
    let home = Home::new();
    let file = several(&home, "torn", 2);
    injects(&home, &file);
    let results = file.with_extension("results").join("results.jsonl");
    let bytes = std::fs::read(&results).unwrap();
    std::fs::write(&results, &bytes[..bytes.len() - 9]).unwrap();
    injects(&home, &file);
    assert_eq!(lines(&file), 5);
    std::fs::write(&results, b"{\"line\":\"nothing\"}\n").unwrap();
    let output = home.outlast(["report".as_ref(), file.with_extension("results").as_os_str()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("line 1 is no result"), "{}", said(&output));
}

#[test]
fn a_page_holds_its_plots_and_loads_nothing() {
    let home = Home::new();
    let file = several(&home, "page", 2);
    injects(&home, &file);
    let page = home.file("page.html");
    let folder = file.with_extension("results");
    let output =
        home.outlast(["report".as_ref(), folder.as_os_str(), "--html".as_ref(), page.as_os_str()]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && page.contains("native: memory (2)"), "{page}");
    assert!(!page.contains("src=") && !page.contains("href="), "it loads something");
}

/// Who keeps it going is not harmed, and begins it again.
#[test]
fn a_descendant_is_struck_in_place_of_who_keeps_it() {
    let home = Home::new();
    let script = "exec 2>/dev/null; until sleep 1.25; do :; done; echo done";
    for (process, outcome) in [("process = 'sleep 1.25'", "correct"), ("", "crash")] {
        let text = format!(
            "count = 4\nreferences = 1\ntimeout = '{ENDS}s'\n[target]\ncommand = ['sh', '-c', '{script}']\n{process}\n\
             [[setting]]\nname = 'native'\n[[fault]]\nkind = 'signal'\nsignal = 'SIGKILL'\nclock = 'elapsed'\nfrom = 0.1\nto = 0.8\n"
        );
        let file = campaign(&home, outcome, &text);
        injects(&home, &file);
        let all: Value = serde_json::from_slice(&report(&home, &file, "--json").stdout).unwrap();
        let experiments = all["experiments"].as_array().unwrap();
        let expected = |e: &Value| e["outcome"] == outcome && e["struck"] == true;
        assert!(experiments.len() == 4 && experiments.iter().all(expected), "{all:#}");
    }
}
