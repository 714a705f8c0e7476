//! The short form of RMK's evaluation: everything is measured once, on the real programs.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

#[test]
fn every_part_is_measured() {
    let bench = Path::new(env!("CARGO_BIN_EXE_outlast-bench"));
    let outlast = bench.with_file_name("outlast");
    assert!(outlast.exists(), "{} is missing; `make build` builds it", outlast.display());
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(bench)
        .args(["evaluation", "rmk", "--quick", "--outlast"])
        .arg(&outlast)
        .arg("--out")
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(folder.path().join("rmk.json")).unwrap();
    let results: Value = serde_json::from_str(&text).unwrap();
    let entries = |part: &str| results[part]["entries"].as_array().unwrap().clone();
    for (part, count) in [("injected", 4), ("unharmed", 1), ("applications", 3), ("approaches", 5), ("loads", 6)] {
        let entries = entries(part);
        assert_eq!(entries.len(), count, "{part}");
        for entry in entries {
            // Who may not look at the scheduler cannot have it watched.
            let oshang = entry["modules"] == "oshang" && !rustix::process::geteuid().is_root();
            assert!(entry["obstacle"].is_null() || oshang, "{part}: {entry}");
        }
    }
    // What hangs is found, all of it, and clients do not see it.
    let hangs = entries("injected").into_iter().find(|one| one["campaign"] == "web-hangs").unwrap();
    assert!(hangs["struck"].as_u64().unwrap() > 0, "{hangs}");
    assert_eq!((&hangs["detected"], &hangs["correct"]), (&hangs["struck"], &hangs["count"]), "{hangs}");
    let unharmed = &entries("unharmed")[0];
    assert_eq!((&unharmed["different"], &unharmed["false_alarms"]), (&0.into(), &0.into()), "{unharmed}");
    // Killed again and again, a server with commits before its replies, or a log of them, breaks no connection and says nothing wrong or twice.
    for name in ["visible", "server"] {
        let approach = entries("approaches").into_iter().find(|one| one["name"] == name).unwrap();
        assert_eq!((&approach["broken"], &approach["wrong"]), (&0.into(), &0.into()), "{approach}");
    }
    for application in entries("applications") {
        let round = &application["rounds"][0];
        for made in ["shadow_ms", "dump_ms", "armed_ms", "written"] {
            assert!(!round[made].as_array().unwrap().is_empty(), "{made}: {application}");
        }
    }
    assert!(folder.path().join("rmk.md").exists() && folder.path().join("rmk-figure-9.svg").exists());
}
