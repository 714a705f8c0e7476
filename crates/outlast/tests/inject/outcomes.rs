//! Faults in registers, in areas of memory, of limits and of descriptors are judged by what becomes of the program, not by that they struck.

use super::*;
use std::collections::BTreeMap;

/// The target in C that is struck in areas.
fn areas(home: &Home) -> PathBuf {
    let program = home.file("areas");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inject/areas.c");
    let header = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../api");
    let built = Command::new("gcc").args(["-O1", "-Wall", header, "-o"]).arg(&program).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", said(&built));
    program
}

/// What became of `count` faults of one kind, by number: by itself, and protected.
fn both(name: &str, arguments: &[&str], count: u32, fault: &str) -> Vec<[Value; 2]> {
    let home = Home::new();
    let input = home.file("input");
    std::fs::write(&input, "line\n").unwrap();
    let program = areas(&home);
    let place = |word: &&str| if *word == "INPUT" { input.to_str().unwrap().to_string() } else { word.to_string() };
    let command: Vec<String> =
        [program.to_str().unwrap().to_string()].into_iter().chain(arguments.iter().map(place)).collect();
    let text = format!(
        "count = {count}\nseed = 5\nreferences = 2\njobs = 2\ntimeout = '20s'\n[target]\ncommand = {command:?}\n{BOTH}[[fault]]\n{fault}\n"
    );
    let file = campaign(&home, name, &text);
    injects(&home, &file);
    let all: Value = serde_json::from_slice(&report(&home, &file, "--json").stdout).unwrap();
    let mut found: BTreeMap<u64, [Value; 2]> = BTreeMap::new();
    for experiment in all["experiments"].as_array().unwrap() {
        let which = usize::from(experiment["setting"] == "protected");
        found.entry(experiment["number"].as_u64().unwrap()).or_default()[which] = experiment.clone();
    }
    assert_eq!(found.len(), count as usize, "{all:#}");
    found.into_values().collect()
}

fn outcome(experiment: &Value) -> &str {
    experiment["outcome"].as_str().unwrap_or_else(|| panic!("{experiment:#}"))
}

/// The bit that was drawn, of a register.
fn bit(experiment: &Value) -> u32 {
    let what = experiment["what"].as_str().unwrap();
    what.rsplit(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{what}"))
}

/// Whatever the bit is, another number is printed, and nobody else can know.
#[test]
fn a_bit_of_a_register_that_holds_a_number_is_a_fail_silence_violation() {
    let fault = "kind = 'register'\nregisters = ['rdi']\nsymbol = 'tell'\nnth = [1, 3]";
    for experiments in both("number", &["told"], 8, fault) {
        for one in &experiments {
            assert_eq!((outcome(one), &one["activated"]), ("fail-silence", &true.into()), "{one:#}");
        }
    }
}

/// A bit that makes an address of it that no program has ends a program where it stands; protected, it goes back to before that.
#[test]
fn a_bit_of_the_instruction_pointer_is_a_crash_and_under_outlast_nothing() {
    let fault = "kind = 'register'\nregisters = ['rip']\nsymbol = 'tell'\nnth = [2, 3]";
    let all = both("pointer", &["told"], 12, fault);
    let wild: Vec<_> = all.iter().filter(|[native, _]| bit(native) >= 47).collect();
    assert!(!wild.is_empty(), "{all:#?}");
    for [native, protected] in wild {
        assert_eq!((outcome(native), outcome(protected)), ("crash", "correct"), "{native:#} {protected:#}");
        assert!(protected["outlast"]["recoveries"].as_u64() >= Some(1), "{protected:#}");
    }
}

/// One that nobody looks at any more.
#[test]
fn a_register_that_is_written_next_is_not_activated() {
    let fault = "kind = 'register'\nregisters = ['rax']\nsymbol = 'add_more'";
    for experiments in both("unused", &["text"], 4, fault) {
        for one in &experiments {
            assert_eq!((outcome(one), &one["activated"]), ("not-activated", &false.into()), "{one:#}");
        }
    }
}

/// Most of what there is in the area is summed up and printed: nearly every bit there is one of the sum's.
#[test]
fn a_bit_of_an_area_is_seen_in_the_sum_over_it() {
    for area in ["data", "heap", "stack"] {
        let fault = format!("kind = 'memory'\narea = '{area}'\nsymbol = 'strike'");
        let all = both(area, &[area], 8, &fault);
        for which in 0..2 {
            let silent = all.iter().filter(|one| outcome(&one[which]) == "fail-silence").count();
            assert!(silent >= 6, "{area}: {all:#?}");
            // What is told of a fault that was seen.
            let told = all.iter().filter(|one| outcome(&one[which]) == "fail-silence");
            assert!(told.clone().all(|one| one[which]["activated"] != false), "{area}: {all:#?}");
        }
    }
}

/// Nearly every bit of what is executed makes another program of it. That is no one outcome, but never none.
#[test]
fn a_bit_of_text_that_is_executed_shows() {
    let all = both("text", &["text"], 10, "kind = 'memory'\narea = 'text'\nsymbol = 'between'");
    let harmed = all.iter().filter(|[native, _]| !["correct", "not-activated"].contains(&outcome(native))).count();
    assert!(harmed >= 5, "{all:#?}");
    for [native, protected] in &all {
        assert!(native["struck"] == true && protected["struck"] == true, "{native:#} {protected:#}");
        // What outlast said nothing of, it had no part in.
        if outcome(native) == "correct" {
            assert_eq!(outcome(protected), "correct", "{native:#} {protected:#}");
        }
    }
}

/// Of those that are open most are read from, and what is read is checked by the program itself.
#[test]
fn a_descriptor_that_is_gone_is_the_programs_own_error() {
    let all = both("open", &["file", "INPUT"], 10, "kind = 'descriptor'\nsymbol = 'strike'");
    for experiments in &all {
        for one in experiments {
            let what = one["what"].as_str().unwrap_or_else(|| panic!("{one:#}"));
            let fd: u32 = what.trim_start_matches("descriptor ").trim_end_matches(" closed").parse().unwrap();
            let expected = match fd {
                1 => Some(("error", "exit 10")),
                2 => None,
                _ => Some(("error", "exit 9")),
            };
            let seen = (outcome(one), one["end"].as_str().unwrap());
            assert!(expected.is_none_or(|expected| expected == seen), "{one:#}");
            assert!(expected.is_some() || outcome(one) == "correct", "{one:#}");
        }
    }
    assert!(all.iter().flatten().filter(|one| outcome(one) == "error").count() >= 8, "{all:#?}");
}

/// What a program wants more than its control group may have, it is killed for; recovered, it has that when there is more again.
#[test]
fn a_limit_that_falls_is_a_crash_and_under_outlast_nothing() {
    let fault = "kind = 'limit'\nfrom = 0.2\nto = 0.6\ndelay = '1s'";
    let all = both("hungry", &["hungry"], 4, fault);
    if all.iter().flatten().any(|one| outcome(one) == "impossible") {
        println!("skipped: no control group can be made here");
        return;
    }
    // What is used changes while it is read, so that not every limit can be set.
    let of = |which: usize| all.iter().map(move |one| &one[which]).filter(|one| one["struck"] == true);
    assert!(of(0).count() >= 1 && of(1).count() >= 1, "{all:#?}");
    for one in of(0) {
        assert_eq!((outcome(one), one["end"].as_str()), ("crash", Some("SIGKILL")), "{one:#}");
    }
    for one in of(1) {
        assert_eq!(outcome(one), "correct", "{one:#}");
        assert!(one["outlast"]["recoveries"].as_u64() >= Some(1), "{one:#}");
    }
}

/// Nobody has said how long a section may take: that is learnt from fifty of its runs. Where looks come seldom there are more.
#[test]
fn a_hang_is_found_by_what_was_learnt() {
    let mut seen = Vec::new();
    for (runs, timeout) in [("400", 60), ("4000", 200)] {
        let home = Home::new();
        let program = areas(&home);
        let text = format!(
            "count = 1\nseed = 5\nreferences = 1\ntimeout = '{timeout}s'\n[target]\ncommand = [{program:?}, 'sections', '{runs}']\n\
             [[setting]]\nname = 'learnt'\nprotected = true\noptions = ['--hang']\n\
             [[fault]]\nkind = 'loop'\nsymbol = 'strike'\n"
        );
        let file = campaign(&home, "learnt", &text);
        injects(&home, &file);
        let all: Value = serde_json::from_slice(&report(&home, &file, "--json").stdout).unwrap();
        let one = all["experiments"][0].clone();
        assert_eq!(one["struck"], true, "{one:#}");
        if outcome(&one) == "correct" {
            assert!(one["outlast"]["recoveries"].as_u64() >= Some(1), "{one:#}");
            assert!(one["outlast"]["detected_us"].as_f64().is_some(), "{one:#}");
            return;
        }
        seen.push(one);
    }
    panic!("{seen:#?}");
}
