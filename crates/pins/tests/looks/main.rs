//! What pins see of programs and do to them: a module asks for it, in a host as in `faulty`, while the programs are killed and go on.
#![no_main]

mod probe;
mod run;
mod watched;

use libtest_mimic::{Arguments, Trial};
use outlast_core::confine::Counting;
use outlast_core::{Budget, Manifest};
use outlast_interfaces::sysc::Visible;
use outlast_interfaces::{checkpoint, crash, visible};
use outlast_pins::{Protection, Wishes};
use outlast_supervisor::options::Options;
use outlast_supervisor::start::{self, Request};
use outlast_supervisor::{departure, Error};
use run::{send, Run};
use serde_json::{json, Value};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[no_mangle]
pub extern "C" fn main() -> libc::c_int {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "run") {
        host(words[1..].to_vec());
    }
    let all: [(&str, fn()); 11] = [
        ("files_are_counted_and_listed_as_the_program_has_them", files),
        ("memory_is_measured_and_copied", memory),
        ("connections_and_what_went_over_them", connections),
        ("pipes_and_what_is_in_them", pipes),
        ("who_waits_for_whose_lock_is_seen_also_after_a_death", waits),
        ("signals_reach_the_program_and_are_told_of", signals),
        ("a_signal_that_is_met_in_place_is_told_of_as_well_as_the_one_that_is_not", met_in_place),
        ("each_write_to_a_watched_variable_is_counted_across_deaths", watched::writes),
        ("threads_that_begin_and_functions_that_run_are_counted", watched::executions),
        ("nobody_outside_can_tell_that_a_program_is_watched_and_killed", watched::unseen),
        ("what_cannot_be_is_refused", refusals),
    ];
    let trial = |(name, body): (&str, fn())| {
        Trial::test(name, move || {
            body();
            Ok(())
        })
    };
    libtest_mimic::run(&Arguments::from_args(), all.map(trial).into()).exit()
}

fn host(argv: Vec<String>) -> ! {
    let load = |program: &str, options: &mut Options| {
        let wishes = Wishes {
            crash: Some(crash::Settings { retries: 3 }),
            visible: Some(visible::Settings { outputs: Visible::Each }),
            checkpoint: Some(checkpoint::Settings { every: Duration::from_secs(1), sparing: true }),
            storm: None,
            has_begun: false,
            ..Wishes::of(&Options::default())
        };
        let budget = Budget { time: Duration::from_secs(20), memory: 64 << 20 };
        let make = &|| Box::new(probe::Probe::default()) as Box<dyn outlast_core::Module>;
        let probe = Manifest { name: checkpoint::NAME, what: "", make, budget, reloads: 0 };
        let modules = outlast_modules::all().map(|module| if module.name == probe.name { probe } else { module });
        let protection = Protection::new(program, &wishes, options, &modules, &[]);
        let protection = protection.map_err(|failure| Error::Module(failure.to_string()))?;
        Ok(Box::new(protection) as Box<dyn outlast_supervisor::decision::Decides>)
    };
    let argv = argv.into_iter().map(Into::into).collect();
    let (name, options) = (Some("it".into()), Options::default());
    let request = Request { argv, begun: None, name, store: None, options, encrypt: None, load: &load };
    match start::run(&request, None) {
        Ok(end) => departure::depart(end),
        Err(e) => panic!("{e}"),
    }
}

/// Of a list, the one of which this is so.
fn one(list: &Value, is: impl Fn(&Value) -> bool) -> Value {
    let found: Vec<&Value> = list.as_array().expect("a list").iter().filter(|entry| is(entry)).collect();
    assert_eq!(found.len(), 1, "{list:#}");
    found[0].clone()
}

const HAS: &str = "def has():\n found = []\n for n in range(512):\n  try: os.fstat(n); found.append(n)\n  except OSError: pass\n return found\n";

fn files() {
    let mut run = Run::start();
    // What the program itself finds, below the engine's numbers; some it has from whoever started this test.
    run.say(&format!("exec({HAS:?})"));
    let first: u64 = run.ask("len(has())").parse().unwrap();
    run.until("a look", || run.seen("file")["open"] == first);
    let path = run.ask("[f := open('/proc/self/exe', 'rb', buffering=0), f.seek(7), os.readlink('/proc/self/exe')][2]");
    let number: i32 = run.ask("f.fileno()").parse().unwrap();
    for _ in 0..3 {
        let list = run.probe(&json!({ "what": "files", "most": 99 }));
        let numbers: Vec<_> = list.as_array().unwrap().iter().map(|entry| entry["number"].to_string()).collect();
        assert_eq!(format!("[{}]", numbers.join(", ")), run.ask("has()"));
        let exe = one(&list, |entry| entry["number"] == number);
        assert_eq!((&exe["path"], &exe["offset"], &exe["kind"]), (&json!(path), &json!(7), &json!("File")));
        assert_eq!(exe["flags"].as_u64().unwrap() & libc::O_ACCMODE as u64, libc::O_RDONLY as u64);
        run.kill();
    }
    run.say("many = [open('/dev/null') for n in range(50)] + [socket.socket() for n in range(5)]");
    run.until("so many", || run.seen("file")["open"] == first + 56 && run.seen("file")["sockets"] == 5);
    assert_eq!(run.probe(&json!({ "what": "files", "most": 10 })).as_array().unwrap().len(), 10);
    run.say("many.clear()");
    run.until("so few again", || run.seen("file")["open"] == first + 1);
    assert_eq!(run.seen("file")["limit"].to_string(), run.ask("__import__('resource').getrlimit(7)[0]"));
    run.end();
}

fn memory() {
    let mut run = Run::start();
    let address: u64 =
        run.ask("ctypes.addressof(b := ctypes.create_string_buffer(b'outlasts', 70000))").parse().unwrap();
    let of = |length: u64| json!({ "what": "copy", "address": address, "length": length });
    run.kill();
    assert_eq!(run.probe(&of(8)), json!(b"outlasts"));
    assert_eq!(run.probe(&of(65536)).as_array().unwrap().len(), 65536);
    let pages = run.probe(&json!({ "what": "pages", "address": address, "length": 8 }));
    assert!(pages.as_array().unwrap()[0]["Present"].is_object(), "{pages}");
    let before = run.seen("mem")["anonymous"].as_u64().unwrap();
    run.say("c = bytearray(b'x') * (64 << 20)");
    run.until("more", || run.seen("mem")["anonymous"].as_u64().unwrap() >= before + (63 << 20));
    let account = run.probe(&json!({ "what": "account" }));
    assert!(account["private_dirty"].as_u64().unwrap() >= 60 << 20, "{account}");
    run.say("del c");
    run.until("less", || run.seen("mem")["anonymous"].as_u64().unwrap() < before + (32 << 20));
    run.end();
}

fn connections() {
    let mut run = Run::start();
    run.say(
        "l = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(l.getsockname()); s = l.accept()[0]",
    );
    run.say("c.sendall(b'x' * 5000); got = len(s.recv(2000, socket.MSG_WAITALL))");
    assert_eq!(run.ask("got"), "2000");
    let port: u16 = run.ask("l.getsockname()[1]").parse().unwrap();
    for _ in 0..3 {
        let states = json!([["Established", 2], ["Listening", 1]]);
        run.until("three", || run.seen("net")["states"] == states && run.seen("net")["unread"] == 3000);
        let list = run.probe(&json!({ "what": "connections" }));
        let served = one(&list, |c| c["local"] == format!("127.0.0.1:{port}") && c["state"] == "Established");
        assert_eq!((&served["unread"], &served["traffic"]["received"]), (&json!(3000), &json!(5000)));
        run.kill();
    }
    run.say("c.close(); s.close(); l.close()");
    run.until("none", || run.seen("net")["states"] == json!([]));
    run.end();
}

fn pipes() {
    let mut run = Run::start();
    run.say("r, w = os.pipe(); os.write(w, b'x' * 1234)");
    let [reads, writes] = ["r", "w"].map(|end| run.ask(end).parse::<i32>().unwrap());
    for _ in 0..3 {
        let list = run.probe(&json!({ "what": "pipes" }));
        let end = |number: i32| one(&list, |pipe| pipe["descriptor"] == number);
        let (read, write) = (end(reads), end(writes));
        assert_eq!((&read["writes"], &write["writes"], &read["inode"]), (&json!(false), &json!(true), &write["inode"]));
        assert_eq!((&read["fill"], &write["fill"], &read["size"]), (&json!(1234), &json!(1234), &json!(65536)));
        run.kill();
    }
    // Looked at all the time, and still its end is one.
    for n in 0..200 {
        run.say("a, b = os.pipe(); n = os.write(b, b'abc'); os.close(b)");
        assert_eq!(run.ask("os.read(a, 9) + os.read(a, 9), os.close(a)"), "b'abc' None", "{n}");
    }
    run.end();
}

fn waits() {
    let mut run = Run::start();
    run.say("m = ctypes.create_string_buffer(40); lock = ctypes.CDLL(None).pthread_mutex_lock; n = lock(m)");
    let address: u64 = run.ask("ctypes.addressof(m)").parse().unwrap();
    let none = |run: &Run| run.seen("ipc")["waits"] == json!([]);
    run.until("a look", || none(&run));
    run.say("t = threading.Thread(target=lock, args=(m,), daemon=True); t.start()");
    for _ in 0..3 {
        run.until("a wait", || {
            let wait = run.seen("ipc")["waits"][0].clone();
            wait[1] == json!({ "lock": "Mutex", "at": address, "owner": run.pid() }) && wait[0] != run.pid()
        });
        run.kill();
    }
    assert_eq!(run.ask("ctypes.CDLL(None).pthread_mutex_unlock(m), t.join()"), "0 None");
    run.until("none again", || none(&run));
    run.end();
}

/// What its handler says. A signal that comes when Python has just looked for some, and is about to read, it sees when it has read.
fn hears(run: &mut Run) -> String {
    run.say("");
    run.hear()
}

fn signals() {
    let mut run = Run::start();
    run.say("signal.signal(signal.SIGUSR1, lambda *a: print('USR1')); signal.signal(signal.SIGUSR2, lambda *a: print('USR2'))");
    assert_eq!(run.ask("1"), "1");
    for _ in 0..20 {
        assert_eq!(run.probe(&json!({ "what": "send", "signal": libc::SIGUSR1 })), "sent");
        assert_eq!(hears(&mut run), "USR1");
        run.kill();
        let thread = run.pid();
        assert_eq!(run.probe(&json!({ "what": "send", "signal": libc::SIGUSR2, "thread": thread })), "sent");
        assert_eq!(hears(&mut run), "USR2");
    }
    let fatal = run.told("fatal");
    assert!(fatal.len() == 20 && fatal.iter().all(|f| f["signal"] == 9 && f["survived"] == false), "{fatal:?}");
    send(run.host(), libc::SIGUSR1);
    run.until("that it was passed on", || run.told("delivered").iter().any(|d| d["signal"] == libc::SIGUSR1));
    assert_eq!(hears(&mut run), "USR1");
    let masks = run.probe(&json!({ "what": "masks" }));
    one(&masks, |mask| mask["thread"] == run.pid() && mask["pending"] == 0);
    run.end();
}

fn met_in_place() {
    let run = Run::start();
    run.say("ctypes.string_at(0)");
    run.until("the end", || run.log().iter().any(|entry| entry["event"] == "exit"));
    let rollbacks = run.log().iter().filter(|entry| entry["event"] == "rollback").count();
    assert!(rollbacks > 0, "{:#?}", run.log());
    let survived = |yes: bool| run.told("fatal").iter().filter(|told| told["survived"] == yes).count();
    // The module may write that down after the log has it.
    run.until("all that was fatal", || survived(true) >= rollbacks && survived(false) > 0);
    let fatal = run.told("fatal");
    assert!(fatal.iter().all(|told| told["signal"] == libc::SIGSEGV), "{fatal:?}");
    assert_eq!(survived(true), rollbacks, "{fatal:?}");
}

fn refusals() {
    let mut run = Run::start();
    run.say(watched::WRITES);
    let address: u64 = run.ask("ctypes.addressof(v)").parse().unwrap();
    let fails = |question: Value, why: &str| {
        let answer = run.probe(&question);
        assert!(answer["failure"].as_str().is_some_and(|failure| failure.contains(why)), "{question}: {answer}");
    };
    fails(json!({ "what": "send", "signal": 64 }), "no signal 64");
    fails(json!({ "what": "send", "signal": 0 }), "no signal 0");
    fails(json!({ "what": "send", "signal": 10, "thread": 1 }), "refused");
    fails(json!({ "what": "copy", "address": address, "length": 65537 }), "65536");
    fails(json!({ "what": "copy", "address": 16, "length": 8 }), "refused");
    fails(json!({ "what": "pages", "address": u64::MAX, "length": 8 }), "beyond");
    fails(json!({ "what": "watch", "address": address + 1, "length": 8 }), "at a multiple");
    fails(json!({ "what": "watch", "address": address, "length": 3 }), "1, 2, 4 or 8");
    fails(json!({ "what": "watch", "address": 0xffff_ffff_8100_0000u64, "length": 8 }), "refused");
    fails(json!({ "what": "unwatch", "watch": 77 }), "77");
    for n in 0..4 {
        assert!(run.probe(&json!({ "what": "watch", "address": address + n, "length": 1 })).is_u64());
    }
    fails(json!({ "what": "watch", "address": address, "length": 8 }), "no more than 4");
    run.end();
}
