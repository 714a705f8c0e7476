//! The suite's own test: whatever an outlast could do wrong must be noticed.
//!
//! An impostor makes one mistake at a time; nothing here needs the real one.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use outlast_cases::failure::Failure;
use outlast_cases::isolation::{Order, Workshop};
use outlast_cases::report::Report;

const CALM: &str = "calm::end_exit::async::ring::root";
const COUNTER: &str = "kill::pipe_counter::async::ring::root";

/// Runs a test against the impostor that makes this mistake.
fn trial(mistake: &str, name: &str, blows: u32) -> Result<Report, Failure> {
    let links = tempfile::tempdir().unwrap();
    let impostor = links.path().join(format!("impostor-{mistake}"));
    symlink(env!("CARGO_BIN_EXE_impostor"), &impostor).unwrap();
    let confine = Path::new(env!("CARGO_BIN_EXE_confine"));
    let workshop = Workshop::new(&impostor, confine, Path::new(env!("CARGO_BIN_EXE_one_case")))?;
    // Only what hangs is to come to it: others may take longer on a busy machine.
    let limit = Duration::from_secs(if mistake == "hang" { 12 } else { 100 });
    workshop.run(&Order { name, seed: 1, blows, limit, mutant: None })
}

fn complaint(mistake: &str, name: &str) -> String {
    trial(mistake, name, 0).expect_err("the mistake was not noticed").to_string()
}

#[test]
fn no_mistake_is_no_failure() {
    trial("exact", COUNTER, 0).unwrap();
    trial("exact", CALM, 0).unwrap();
}

#[test]
fn a_lost_byte_is_noticed_at_its_offset() {
    // Line 777 loses its newline, the ninth of its bytes.
    let text = complaint("lose", COUNTER);
    assert!(text.contains(&format!("stream stdout: first difference at byte {}", 777 * 9 + 8)), "{text}");
}

#[test]
fn a_repeated_line_is_noticed_at_its_offset() {
    // Line 778 should follow, and differs from the repeated line in its last digit.
    let text = complaint("repeat", COUNTER);
    assert!(text.contains(&format!("stream stdout: first difference at byte {}", 778 * 9 + 7)), "{text}");
}

#[test]
fn another_exit_status_is_noticed() {
    let text = complaint("status", CALM);
    assert!(text.contains("exit status") && text.contains("Exited(77)"), "{text}");
}

#[test]
fn a_word_of_its_own_is_noticed() {
    let text = complaint("chat", CALM);
    assert!(text.contains("stream stderr"), "{text}");
}

#[test]
fn an_undeclared_degradation_is_noticed() {
    let text = complaint("degraded", CALM);
    assert!(text.contains("store-full"), "{text}");
}

#[test]
fn a_program_that_was_never_protected_is_noticed() {
    let text = complaint("unprotected", CALM);
    assert!(text.contains("never protected"), "{text}");
}

#[test]
fn a_hammer_that_never_hits_is_noticed() {
    let failure = trial("exact", "kill::jumps::async::ring::root", 1).expect_err("nothing was hit");
    assert!(failure.to_string().contains("no blow landed"), "{failure}");
}

#[test]
fn a_hang_is_ended_and_diagnosed() {
    let text = complaint("hang", CALM);
    assert!(text.contains("took too long") && text.contains("(sleep)"), "{text}");
}

#[test]
fn a_process_left_behind_is_noticed_and_ended() {
    let text = complaint("leave", CALM);
    assert!(text.contains("(sleep)"), "{text}");
}
