//! The figure's command in short: it measures, crashes every component, and no request fails.

use std::process::Command;

#[test]
fn the_figure_has_every_server_and_every_crash_and_no_failed_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let (json, svg) = (folder.path().join("figure.json"), folder.path().join("figure.svg"));
    for (runs, options) in
        [("2", [].as_slice()), ("1", &["--keep-alive", "--servers", "base,hand,glue,hand-crashes,crashes"])]
    {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_glue-web-bench"));
        // Half as many again as it takes: on a busy machine one comes later than it should.
        bench
            .args(["--runs", runs, "--length", "3100ms", "--slice", "1s", "--crash-every", "300ms", "--json"])
            .arg(&json);
        bench.arg("--svg").arg(&svg).args(options);
        let said = bench.output().expect("the command");
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
        let all: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).expect("there")).expect("JSON");
        let all = all.as_array().expect("a list");
        for server in
            ["base", "base + by hand", "base + glue", "base + by hand, with crashes", "base + glue, with crashes"]
        {
            let one = all.iter().find(|one| one["server"] == server).unwrap_or_else(|| panic!("no {server}: {text}"));
            assert!(text.contains(&format!("| {server} |")), "{text}");
            assert_eq!(one["failed"], 0, "{server}");
            assert_eq!(one["throughput"].as_array().map(|each| each.len().to_string()).as_deref(), Some(runs));
            assert!(one["mean"].as_f64().is_some_and(|mean| mean > 1.0), "{one}");
            let crashes = one["crashes"].as_array().expect("a list");
            assert_eq!(crashes.len(), 6, "{one}");
            // The first of them comes round again.
            assert!(crashes.iter().all(|crash| crash["count"].as_u64() >= runs.parse().ok()), "{one}");
        }
        let figure = std::fs::read_to_string(&svg).expect("there");
        assert!(figure.starts_with("<svg") && figure.contains("scheduler") && figure.contains("with crashes"));
    }
}
