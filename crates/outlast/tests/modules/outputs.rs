//! Outputs while what stands before them is switched off and on.

use super::*;

/// Nothing that was seen while commits stood before outputs is lost or repeated, whenever they are switched off and on and whatever dies
/// meanwhile; and files are at all times as one that never died would have left them.
fn outputs_are_exact(threads: bool, options: &[&str], seed: u64, rounds: usize) {
    let home = Home::new();
    let streams = Streams::begin(&home, threads, options);
    let mut seed = seed;
    for n in 0..rounds {
        let recovered = |times| home.await_event("it", "recovered", times);
        let pid = || home.await_protected("it")["pid"].clone();
        // On.
        pause(&mut seed);
        kill(&pid(), libc::SIGKILL);
        recovered(3 * n + 1);
        // From here on what comes out may come again.
        streams.may_repeat();
        let victim = pid();
        let child = begin(&home, "remove visible it");
        pause(&mut seed);
        kill(&victim, libc::SIGKILL);
        let output = finish(child);
        assert!(output.status.success(), "round {n}: {}", said(&output));
        recovered(3 * n + 2);
        pause(&mut seed);
        let victim = pid();
        let child = begin(&home, "add visible it");
        pause(&mut seed);
        kill(&victim, libc::SIGKILL);
        let output = finish(child);
        assert!(output.status.success(), "round {n}: {}", said(&output));
        recovered(3 * n + 3);
        // And from here on no more.
        streams.may_not_repeat();
        streams.check(n);
    }
    pause(&mut seed);
    streams.end();
}

#[test]
fn outputs_are_neither_lost_nor_repeated_when_commits_are_switched_off_and_on() {
    outputs_are_exact(false, &[], 5, 12);
}

#[test]
fn nor_are_those_of_threads_that_wait_for_room() {
    outputs_are_exact(true, &[], 7, 12);
}

#[test]
fn nor_where_pages_are_found_by_faults_and_commits_come_at_intervals() {
    outputs_are_exact(false, &["--tracker", "mprotect", "--every", "2ms"], 11, 8);
    outputs_are_exact(true, &["--every", "2ms"], 17, 8);
}

#[test]
fn nor_without_a_ring() {
    outputs_are_exact(false, &["--no-io-uring"], 19, 8);
}

#[test]
fn nor_where_they_are_on_the_medium_or_alone() {
    outputs_are_exact(true, &["--commit", "each", "--durable=visible"], 13, 8);
}
