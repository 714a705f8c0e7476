//! The command as people use it: what it says of bad interfaces, and that it takes good ones.

use std::path::Path;
use std::process::{Command, Output};

fn glue(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_glue")).args(arguments).current_dir(folder).output().expect("glue runs")
}

/// What `glue check` says of a text, and whether it lets it through.
fn check(text: &str) -> (String, bool) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("it.glue"), text).expect("a file");
    let output = glue(folder.path(), &["check", "it.glue"]);
    assert!(output.stdout.is_empty());
    (String::from_utf8(output.stderr).expect("text"), output.status.success())
}

const INFO: &str = "service_global_info = { service = s, desc_close_self_only = true, desc_dep_create_none = true };\n";

#[test]
fn all_errors_of_a_file_are_found_in_one_run_each_with_its_place_and_a_hint() {
    let (said, passed) = check(
        "service_global_info = {\n\tservice = door,\n\tdesc_close_self_only = true,\n\tdesc_close_subtree = true,\n\
         \tdesc_dep_create_none = true,\n\tdesc_gobal = true,\n};\n\
         sm_creation(door_open);\nsm_transiton(door_open, door_close);\nsm_transition(door_open, door_clse);\n\
         sm_block(door_open);\n\
         desc_data_retval(long, door)\ndoor_open(int desc_dta(x));\nint door_close(long desc(door)\nint lost(char *p);\n",
    );
    assert!(!passed);
    for expected in [
        "it.glue:4:2",
        "`desc_close_subtree` contradicts `desc_close_self_only`",
        "it.glue:6:2",
        "did you mean `desc_global`?",
        "it.glue:9:1",
        "did you mean `sm_transition`?",
        "`door_clse` is not declared",
        "it.glue:13:15",
        "did you mean `desc_data`?",
        "it.glue:15:1",
        "expected `,` or `)`, found `int`",
        "^^^",
    ] {
        assert!(said.contains(expected), "{expected} is not in\n{said}");
    }
}

#[test]
fn an_interface_that_contradicts_itself_is_refused() {
    let machine = "sm_creation(a);\ndesc_data_retval(long, d)\na(void);\nint b(long desc(d));\n";
    for (text, expected) in [
        ("", "no `service_global_info`"),
        (&format!("{INFO}int f(void);"), "no function creates a descriptor"),
        (&format!("{INFO}{machine}sm_transition(b, a);"), "the state `b` is never reached"),
        (&format!("{INFO}{machine}sm_transition(a, b);sm_block(b);"), "a function blocks and none wakes it up"),
        (&format!("{INFO}{machine}sm_transition(a, b);sm_wakeup(b);"), "a function wakes up and none blocks"),
        (
            &format!("{INFO}{machine}sm_terminal(b);sm_transition(a, b);sm_transition(b, b);"),
            "leaves the terminal state",
        ),
        (
            &format!("{INFO}sm_creation(a);desc_data_retval(long, d) a(long parent_desc(p));"),
            "a parent that nobody creates",
        ),
        (&format!("{INFO}{}", INFO), "a second `service_global_info`"),
        (&format!("{INFO}{machine}int c(char *p);"), "nothing says how long `p` is"),
        (&format!("{INFO}{machine}int c(int size_of(q, n));"), "`size_of` names no parameter `q`"),
        (&format!("{INFO}{machine}int a(void);"), "`a` is declared twice"),
        (&format!("{INFO}{machine}int c(fd_t memory);"), "an open file that is given"),
        (&format!("{INFO}{machine}int c(fd_t *ret(x), fd_t *ret(y));"), "`c` has 2 open files that come back"),
        (
            &format!("service_global_info = {{ service = s, desc_close_self_only = true, desc_dep_create_none = true, desc_global = true }};{machine}int c(long desc(d), int *desc_data_add(sum, ret(n)));"),
            "nobody could keep this sum",
        ),
        (&format!("{INFO}{machine}int c(buffer_t *ret(b));"), "a buffer that is not lent"),
        (&format!("{INFO}{machine}buffer_t c(long desc(d));"), "a buffer that is not lent"),
        (&format!("{INFO}{machine}int c(long desc(d), buffer_t desc_data(b));"), "a buffer cannot be remembered"),
        (&format!("{INFO}{machine}sm_transition(a, c);int c(long desc(d), buffer_t b);"), "a buffer cannot be remembered"),
        (&format!("{INFO}{machine}/* no end"), "a comment without an end"),
        (&format!("{INFO}{machine}@@@"), "this belongs to no interface"),
        ("service_global_info = { service = s };", "nothing says what else is closed"),
    ] {
        let (said, passed) = check(text);
        assert!(!passed && said.contains(expected), "expected {expected} of\n{text}\nfound\n{said}");
    }
}

#[test]
fn a_c_header_in_the_form_of_superglue_compiles_as_it_is() {
    // Guards, an include, types that are not defined, words within words, a type inside the words.
    let header = "#ifndef _QUEUE_H\n#define _QUEUE_H\n#include \"cidl_gen.h\"\n\
         service_global_info = {\n\tservice = queue,\n\tdesc_close_subtree = true,\n\tdesc_dep_create_same = true,\n\
         \tdesc_dep_close_removal = true,\n\tdesc_global = false,\n\tdesc_has_data = true,\n\tresc_has_data = true,\n};\n\
         sm_creation(qsplit);\nsm_transition(qsplit, qget);\nsm_transition(qget, qget); // again\n\
         sm_transition(qsplit, qput);\nsm_transition(qget, qfree);\nsm_terminal(qfree);\n\
         desc_data_retval(qd_t, qid)\nqsplit(spdid_t desc_data(spdid), desc_data(parent_desc(qd_t parent)),\n\
         \tchar *desc_data(name), int desc_data(size_of(name, length)));\n\
         int qget(spdid_t spdid, qd_t desc(qid), int *ret(where), int *desc_data_add(offset, ret(sz)));\n\
         int qput(spdid_t spdid, qd_t desc(qid), int resource_data(qid, cbid), int sz);\n\
         int qfree(spdid_t spdid, qd_t desc_terminate(qid));\n#endif /* _QUEUE_H */\n";
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("queue.h"), header).expect("a file");
    let output = glue(folder.path(), &["compile", "queue.h", "-o", "."]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stubs = std::fs::read_to_string(folder.path().join("queue.rs")).expect("the stubs");
    for expected in ["pub type spdid_t = i64;", "name: &[u8]", "// D0: ", "// D1: ", "// R0: ", "// T1: "] {
        assert!(stubs.contains(expected), "{expected} is not in\n{stubs}");
    }
    let graph = glue(folder.path(), &["graph", "queue.h"]);
    let graph = String::from_utf8(graph.stdout).expect("text");
    assert!(graph.starts_with("<svg") && graph.contains(">qget<") && graph.matches("<rect").count() == 4, "{graph}");
    let json = glue(folder.path(), &["check", "--json", "queue.h"]);
    assert_eq!(String::from_utf8_lossy(&json.stdout), "[]\n");
}

#[test]
fn header_and_manual_pages_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    for command in ["headers", "manual"] {
        assert!(glue(folder.path(), &[command]).status.success());
    }
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
    assert!(read("outlast_glue.h").contains("int glue_run("));
    assert!(read("outlast_glue.h.3").starts_with(".TH outlast_glue.h 3") && read("glue-compile.1").contains("lang"));
}

#[test]
fn no_cut_of_an_interface_makes_it_panic() {
    let text = include_str!("../../../services/interfaces/lock.glue");
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        let _ = outlast_glue::understand(&text[..end]);
        let _ = outlast_glue::understand(&text[end..]);
    }
    let deep = format!("{INFO}int f(int {}x", "desc(".repeat(100_000));
    assert!(outlast_glue::understand(&deep).0.is_none());
}

#[test]
fn who_reads_no_further_ends_no_command_in_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "{INFO}sm_creation(a);\nsm_transition(a, b);\ndesc_data_retval(long, d)\na(void);\nint b(long desc(d));\n"
    );
    std::fs::write(folder.path().join("it.glue"), text).expect("a file");
    for arguments in [&["graph", "it.glue"][..], &["check", "--json", "it.glue"], &["completions", "bash"]] {
        let (reader, writer) = std::os::unix::net::UnixStream::pair().expect("a connection");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_glue"));
        let output = command
            .args(arguments)
            .current_dir(folder.path())
            .stdout(std::os::fd::OwnedFd::from(writer))
            .stderr(std::process::Stdio::piped());
        let output = output.spawn().and_then(std::process::Child::wait_with_output).expect("glue runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
