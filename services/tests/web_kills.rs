//! The web server while its components are killed: no request fails, no byte is wrong, and connections stay.

mod support;
#[path = "support/web.rs"]
mod web;

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use outlast_services::processes::children;
use support::{kill, Chance};
use web::{bytes, Kills, Web, COMPONENTS};

/// Around the borders of pieces and buffers.
const SIZES: [usize; 9] = [0, 1, 900, 4_095, 4_096, 20_000, 65_536, 65_537, 300_000];
/// Nobody is to be closed for being slow on a busy machine.
const PATIENT: [&str; 2] = ["--timeout", "1h"];

fn files() -> Vec<(String, Vec<u8>)> {
    let one = |(at, size): (usize, &usize)| (format!("folder/{at}"), bytes(*size, at as u64 + 1));
    SIZES.iter().enumerate().map(one).collect()
}

/// Clients that ask at random, each on a connection that stays or on one that it leaves now and then, some requests at once.
fn ask_until(web: &Web, chance: &mut Chance, enough: impl Fn(u64) -> bool + Sync) -> u64 {
    let files = files();
    let requests = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..6)
            .map(|number| {
                let (files, requests, enough, mut chance) = (&files, &requests, &enough, chance.fork());
                scope.spawn(move || {
                    let mut client = web.client();
                    while !enough(requests.load(Ordering::SeqCst)) {
                        if number >= 3 && chance.below(4) == 0 {
                            client = web.client();
                        }
                        let wanted: Vec<usize> =
                            (0..=chance.below(4)).map(|_| chance.below(SIZES.len() as u64) as usize).collect();
                        for at in &wanted {
                            client.ask(&files[*at].0);
                        }
                        for at in wanted {
                            let response = client.answer(true).expect("the connection stays");
                            assert_eq!(response.status, 200);
                            assert!(response.body == files[at].1, "wrong bytes of {}", files[at].0);
                            requests.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                })
            })
            .collect();
        all.into_iter().for_each(|client| client.join().expect("a client that got what it asked for"));
    });
    requests.into_inner()
}

fn outlives(components: &[&str], kills: u32) {
    outlives_by(&[], components, kills);
}

fn outlives_by(stubs: &[&str], components: &[&str], kills: u32) {
    let mut web = Web::start(&files(), &[&PATIENT, stubs].concat());
    let mut chance = Chance::new();
    let mut asking = chance.fork();
    let (requests, killed) = web.while_killed(components, &mut chance, |killed: &Kills| {
        ask_until(&web, &mut asking, |requests| requests >= 300 && killed.count() >= kills)
    });
    println!("{components:?}: {killed} kills, {requests} requests");
    assert_eq!(web.stop(), 0);
}

#[test]
fn clients_do_not_notice_that_the_event_component_is_killed() {
    outlives(&["event"], 40);
}

#[test]
fn clients_do_not_notice_that_the_ram_file_system_is_killed() {
    outlives(&["fs"], 40);
}

#[test]
fn clients_do_not_notice_that_the_lock_component_is_killed() {
    outlives(&["lock"], 40);
}

#[test]
fn clients_do_not_notice_that_the_memory_manager_is_killed() {
    outlives(&["memory"], 40);
}

#[test]
fn clients_do_not_notice_that_the_scheduler_is_killed() {
    outlives(&["scheduler"], 40);
}

#[test]
fn clients_do_not_notice_that_the_timer_is_killed() {
    outlives(&["timer"], 40);
}

#[test]
fn clients_do_not_notice_that_any_component_is_killed_at_any_time() {
    outlives(&COMPONENTS, 120);
}

#[test]
fn clients_do_not_notice_either_where_recovery_is_written_by_hand() {
    outlives_by(&["--stubs", "hand"], &COMPONENTS, 120);
}

#[test]
fn curl_gets_every_file_while_components_are_killed() {
    let web = Web::start(&files(), &PATIENT);
    let (output, list) = (tempfile::tempdir().expect("a folder"), files());
    let (runs, kills) = web.while_killed(&COMPONENTS, &mut Chance::new(), |kills| {
        let mut runs = 0;
        while kills.count() < 60 || runs < 3 {
            let mut curl = Command::new("curl");
            curl.args(["--silent", "--show-error", "--fail"]);
            for (at, (name, _)) in list.iter().enumerate() {
                curl.arg("--output").arg(output.path().join(at.to_string())).arg(web.url(name));
            }
            let said = curl.output().expect("curl");
            assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
            for (at, (name, bytes)) in list.iter().enumerate() {
                assert!(std::fs::read(output.path().join(at.to_string())).expect("there") == *bytes, "{name}");
            }
            runs += 1;
        }
        runs
    });
    println!("{kills} kills, {runs} runs of curl");
}

/// The number after a word of what a program said.
fn number(text: &str, after: &str) -> Option<u64> {
    let rest = text.split(after).nth(1)?;
    rest.split_whitespace().next()?.parse().ok()
}

#[test]
fn ab_counts_no_failed_request_while_components_are_killed() {
    let web = Web::start(&files(), &PATIENT);
    let ((), kills) = web.while_killed(&COMPONENTS, &mut Chance::new(), |kills| {
        let mut first = true;
        while first || kills.count() < 60 {
            first = false;
            for options in [["-n", "300"].as_slice(), &["-k", "-n", "1500"]] {
                let mut ab = Command::new("ab");
                ab.args(["-q", "-c", "10"]).args(options).arg(web.url("folder/2"));
                let said = ab.output().expect("ab");
                let text = String::from_utf8_lossy(&said.stdout);
                assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
                assert_eq!(number(&text, "Failed requests:"), Some(0), "{text}");
                assert_eq!(number(&text, "Complete requests:"), options.last().and_then(|n| n.parse().ok()));
                assert!(!text.contains("Non-2xx"), "{text}");
            }
        }
    });
    println!("{kills} kills");
}

#[test]
fn clients_wait_for_a_component_that_hangs_to_be_replaced_and_notice_nothing_else() {
    let web = Web::start(&files(), &PATIENT);
    for component in COMPONENTS {
        let template = web.template(component);
        let instance = children(template)[0];
        kill(instance, libc::SIGSTOP);
        let mut requests = 0;
        while children(template).contains(&instance) {
            // A new connection each time, which needs memory of its own.
            assert!(web.client().get("folder/6").body == files()[6].1);
            requests += 1;
        }
        assert!(web.client().get("folder/8").body == files()[8].1);
        println!("{component}: {requests} requests");
    }
}

#[test]
fn an_idle_connection_stays_while_components_are_killed() {
    let web = Web::start(&files(), &PATIENT);
    let mut idle: Vec<_> = (0..20).map(|_| web.client()).collect();
    for client in &mut idle {
        assert_eq!(client.get("folder/2").status, 200);
    }
    let asked = AtomicBool::new(false);
    let ((), kills) = web.while_killed(&COMPONENTS, &mut Chance::new(), |kills| {
        support::await_that(|| kills.count() >= 40);
        for client in &mut idle {
            assert!(client.get("folder/5").body == files()[5].1);
        }
        asked.store(true, Ordering::SeqCst);
    });
    println!("{kills} kills");
    assert!(asked.into_inner());
}
