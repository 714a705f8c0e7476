//! Threads that contend for a lock, as a client that tests run: `lock-contenders THREADS ROUNDS [MECHANISM]`. Each writes
//! `+N` when it has the lock and `-N` before it gives it back, so that others can see from outside who holds it when.
//! MECHANISM: with stubs that lack it; `by-hand`: with recovery that is written by hand.

use std::process::ExitCode;

use outlast_glue_rt::Grant;
use outlast_services::by_hand::lock as by_hand;

macro_rules! contend {
    ($stubs:ident, $channel:expr, $threads:expr, $rounds:expr) => {{
        let client = $stubs::Client::new($channel);
        let lock = client.lock_alloc().expect("a lock");
        std::thread::scope(|scope| {
            let all: Vec<_> = (1..=$threads)
                .map(|thread| {
                    let client = client.clone();
                    scope.spawn(move || {
                        for _ in 0..$rounds {
                            client.lock_pretake(lock, thread)?;
                            client.lock_take(lock, thread)?;
                            say(&format!("+{thread}\n"));
                            std::thread::yield_now();
                            say(&format!("-{thread}\n"));
                            client.lock_release(lock, thread)?;
                        }
                        Ok::<(), outlast_glue_rt::CallError>(())
                    })
                })
                .collect();
            all.into_iter().try_for_each(|thread| thread.join().expect("a thread that does not panic"))
        })
        .and_then(|()| client.lock_free(lock))
    }};
}

macro_rules! without {
    ($($name:ident: $file:literal),*) => {
        $(mod $name {
            #![allow(unused_imports, dead_code, unused_variables, non_camel_case_types, clippy::all)]
            include!(concat!(env!("OUT_DIR"), "/", $file));
        })*
    };
}

without!(whole: "lock.rs", without_r0: "lock_without_r0.rs", without_t0: "lock_without_t0.rs", without_t1: "lock_without_t1.rs");

/// One write, so that lines of several threads do not mix.
fn say(line: &str) {
    // SAFETY: writes a live string.
    unsafe { libc::write(1, line.as_ptr().cast(), line.len()) };
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|n| n.parse::<u32>().ok()).unwrap_or(1);
    let (threads, rounds) = (number(0), number(1));
    let channel = match Grant::inherited("lock").and_then(Grant::open) {
        Ok(channel) => channel,
        Err(error) => {
            eprintln!("lock-contenders: {error}");
            return ExitCode::FAILURE;
        }
    };
    let outcome = match arguments.get(2).map(String::as_str) {
        None => contend!(whole, channel, threads, rounds),
        Some("by-hand") => contend!(by_hand, channel, threads, rounds),
        Some("r0") => contend!(without_r0, channel, threads, rounds),
        Some("t0") => contend!(without_t0, channel, threads, rounds),
        Some("t1") => contend!(without_t1, channel, threads, rounds),
        Some(other) => panic!("no stubs without {other}"),
    };
    match outcome {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lock-contenders: {error}");
            ExitCode::FAILURE
        }
    }
}
