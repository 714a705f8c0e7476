//! Pins are uninstalled and installed again while the program runs.

use super::*;

fn pin(home: &Home, words: &str) -> Output {
    home.outlast(["pin"].into_iter().chain(words.split(' '))).output().unwrap()
}

fn refused(output: &Output, why: &str) {
    assert!(output.status.code() == Some(1) && said(output).contains(why), "{why}: {}", said(output));
}

fn row(home: &Home, name: &str) -> Value {
    let rows: Value = serde_json::from_slice(&pin(home, "list --json").stdout).unwrap();
    rows.as_array().unwrap().iter().find(|row| row["name"] == name).cloned().unwrap()
}

#[test]
fn a_pin_is_uninstalled_when_no_module_needs_it_and_is_gone_until_it_is_installed_again() {
    let home = Home::new();
    let mut it = Obedient::start(&home, "it", &["--leaks", "20m:70"]);
    it.say("x = 1");
    settings(&home, "it");
    refused(&pin(&home, "remove proc it"), "the pin proc is used by crash, storm");
    refused(&pin(&home, "remove file it"), "the pin file is used by leaks");
    refused(&pin(&home, "remove nonsense it"), "there is no pin called nonsense");
    refused(&pin(&home, "add pmc it"), "the pin pmc is installed");
    refused(&pin(&home, "add nonsense it"), "has no pin called nonsense");
    // One that would use it, but protects nothing, is in nobody's way.
    let removed = pin(&home, "remove pmc it");
    assert!(removed.status.success() && removed.stderr.is_empty(), "{}", said(&removed));
    refused(&pin(&home, "remove pmc it"), "the pin pmc is uninstalled already");
    assert_eq!(
        (&row(&home, "pmc")["uninstalled"], &row(&home, "sig")["uninstalled"]),
        (&serde_json::json!(["it"]), &serde_json::json!([]))
    );
    refused(&module(&home, "add hang it --hang=30s"), "there is no pin called pmc");
    // Whoever takes over knows that, too, and what protects the program goes on.
    let before = home.await_protected("it");
    kill(&before["supervisor"], libc::SIGKILL);
    home.await_status("it", |status| status["protected"] == true && status["supervisor"] != before["supervisor"]);
    refused(&module(&home, "add hang it --hang=30s"), "there is no pin called pmc");
    kill(&home.await_protected("it")["pid"], libc::SIGKILL);
    assert_eq!(it.ask("x"), "1");
    let added = pin(&home, "add pmc it");
    assert!(added.status.success() && added.stderr.is_empty(), "{}", said(&added));
    assert_eq!(row(&home, "pmc")["uninstalled"], serde_json::json!([]));
    done(&home, "add hang it --hang=30s");
    refused(&pin(&home, "remove pmc it"), "the pin pmc is used by hang");
    let expected = ["the pin pmc is uninstalled", "the pin pmc is installed", "hang protects it: --hang=30s"];
    assert_eq!(changes(&home, "it"), expected);
    // The shell of a person whose supervisor was killed sees that.
    it.say("x += 1");
    assert_eq!(it.ask("x"), "2");
}
