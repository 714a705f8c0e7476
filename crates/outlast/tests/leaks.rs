//! A program that has more and more files open, or memory, is told of; one that grows and shrinks is not.

mod support;

use std::time::{Duration, Instant};
use support::obedient::Obedient;
use support::{kill, said, until, Home};

const BEGIN: &str =
    "import resource, time, threading; resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400)); kept = []";
const LEAK: &str = "def grow(n):\n while len(kept) < n: kept.append(open('/dev/null')); time.sleep(0.02)\n";

fn leaks(home: &Home) -> Vec<String> {
    let output = home.outlast(["log", "it", "--json"]).output().unwrap();
    let entries = String::from_utf8(output.stdout).unwrap();
    let entries = entries.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let leaks = entries.filter(|entry| entry["event"] == "leaks");
    leaks.map(|entry| entry["cause"].as_str().unwrap().to_string()).collect()
}

/// Has it do this in a thread.
fn go(it: &mut Obedient, function: &str) {
    it.say(BEGIN);
    it.say(&format!("exec({function:?})"));
    it.say("threading.Thread(target=work, daemon=True).start()");
}

#[test]
fn a_program_that_leaks_descriptors_is_told_of_also_after_its_death() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &["--leaks", "2s:50"]);
    go(&mut it, &format!("{LEAK}def work(): grow(390)"));
    until("fifty files", || it.ask("len(kept) > 50").contains("True"));
    kill(&home.status("it")["pid"], libc::SIGKILL);
    home.await_event("it", "recovered", 1);
    home.await_event("it", "leaks", 1);
    let told = leaks(&home);
    assert!(told[0].starts_with("descriptors: from ") && told[0].ends_with(", of 400 that it may have"), "{told:?}");
    let metrics = home.outlast(["metrics"]).output().unwrap();
    assert!(said(&metrics).contains("outlast_events_total{name=\"it\",event=\"leaks\"} 1"), "{}", said(&metrics));
    let modules = home.outlast(["module", "list", "--json"]).output().unwrap();
    let modules: serde_json::Value = serde_json::from_slice(&modules.stdout).unwrap();
    let of = |name: &str| modules.as_array().unwrap().iter().find(|m| m["name"] == name).unwrap()["programs"].clone();
    assert_eq!(of("leaks"), serde_json::json!(["it"]));
}

#[test]
fn whoever_takes_over_goes_on_looking() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &["--leaks", "2s:50"]);
    go(&mut it, &format!("{LEAK}def work(): grow(390)"));
    until("fifty files", || it.ask("len(kept) > 50").contains("True"));
    kill(&home.status("it")["supervisor"], libc::SIGKILL);
    kill(&home.status("it")["pid"], libc::SIGKILL);
    home.await_event("it", "supervisor-restarted", 1);
    home.await_event("it", "leaks", 1);
}

#[test]
fn a_program_whose_memory_grows_without_end_is_told_of() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &["--leaks", "2s:1"]);
    let limit = std::fs::read_to_string("/proc/meminfo").unwrap();
    let limit = limit.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024;
    // A part of it at once, and then a little more again and again.
    let function = format!("def work():\n kept.append(b'x' * {})\n for n in range(300):\n  kept.append(b'x' * 200000)\n  time.sleep(0.02)\n", limit / 90);
    go(&mut it, &function);
    home.await_event("it", "leaks", 1);
    assert!(leaks(&home)[0].starts_with("bytes of memory: from "), "{:?}", leaks(&home));
}

#[test]
fn a_program_that_grows_and_shrinks_is_not_told_of() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &["--leaks", "2s:50"]);
    let function = "def work():\n while True:\n  for n in range(60): kept.append(open('/dev/null'))\n  kept.clear()\n  time.sleep(0.03)\n  hold = [open('/dev/null') for n in range(300)]\n  time.sleep(0.03)\n  del hold\n";
    go(&mut it, function);
    let until_then = Instant::now() + Duration::from_secs(12);
    until("a dozen seconds", || Instant::now() > until_then);
    assert_eq!(leaks(&home), Vec::<String>::new());
    assert_eq!(it.ask("threading.active_count()"), "2");
}

#[test]
fn what_cannot_be_is_refused() {
    let home = Home::new();
    for leaks in ["1s", "10m:0", "10m:101", "10m:x", "x", "10m:"] {
        let output = home.outlast(["run", "--leaks", leaks, "--", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{leaks}: {}", said(&output));
    }
    let file = home.file("a.toml");
    for (leaks, status) in [("10m:70", 0), ("1s", 1)] {
        std::fs::write(&file, format!("[[protect]]\nexecutable = \"/bin/true\"\nleaks = \"{leaks}\"\n")).unwrap();
        let output = home.outlast(["policy", "check"]).arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
    }
}
