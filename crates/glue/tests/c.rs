//! Stubs in C: whatever an interface has, two compilers take them without a warning, with every mechanism and without each.

use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_glue::{c, understand, Interface, Mechanism};

fn interface(text: &str) -> Interface {
    let (interface, diagnostics) = understand(text);
    interface.unwrap_or_else(|| panic!("{diagnostics:?}\n{text}"))
}

fn services() -> Vec<(String, Interface)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../services/interfaces");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let read = |file: &PathBuf| std::fs::read_to_string(file).expect("an interface");
    files.iter().map(|file| (file.to_string_lossy().into_owned(), interface(&read(file)))).collect()
}

/// Compiles every file, those of C++ as such; the headers alone, too.
fn compiles(name: &str, interface: &Interface, without: &[Mechanism], compilers: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = c::generate(interface, name, without);
    for file in &files {
        std::fs::write(folder.path().join(&file.name), &file.text).expect("a file");
    }
    for compiler in compilers {
        let plus = compiler.ends_with("++");
        for file in files.iter().filter(|file| file.name.ends_with(if plus { ".h" } else { ".c" })) {
            let output = Command::new(compiler)
                .args(if plus { ["-std=c++17", "-xc++", "-O0"] } else { ["-std=c11", "-O2", "-Wmissing-prototypes"] })
                .args(["-Wall", "-Wextra", "-Wshadow", "-Werror", "-c", "-o", "/dev/null", "-I"])
                .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../glue-c"))
                .arg(folder.path().join(&file.name))
                .output()
                .expect("a compiler");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{compiler} {} without {without:?}:\n{said}", file.name);
        }
    }
}

#[test]
fn the_stubs_of_every_service_compile_without_a_warning() {
    for (name, interface) in services() {
        compiles(&name, &interface, &[], &["gcc", "clang", "g++"]);
    }
}

#[test]
fn stubs_compile_without_each_mechanism_and_without_all_of_them() {
    for (name, interface) in services() {
        let all = interface.mechanisms();
        for mechanism in &all {
            compiles(&name, &interface, &[*mechanism], &["gcc"]);
        }
        compiles(&name, &interface, &all, &["gcc"]);
    }
}

#[test]
fn each_mechanism_has_its_block_which_is_not_there_without_it() {
    for (name, interface) in services() {
        let text = |without: &[Mechanism]| -> String {
            c::generate(&interface, &name, without).into_iter().map(|file| file.text).collect()
        };
        let whole = text(&[]);
        assert_eq!(whole, text(&[]), "not the same twice");
        for mechanism in Mechanism::ALL {
            let mark = format!("/* {mechanism:?}: {}. */", mechanism.purpose());
            let needed = interface.mechanisms().contains(&mechanism);
            assert_eq!(whole.contains(&mark), needed, "{name} {mechanism:?}");
            // The walk begins with the creation, which is left without R0.
            assert!(!text(&[mechanism]).contains(&mark) || mechanism == Mechanism::R0, "{name} {mechanism:?}");
            assert!(!needed || text(&[mechanism]) != whole, "{name} {mechanism:?}");
        }
    }
}

#[test]
fn an_interface_in_the_form_of_superglue_with_every_word_compiles() {
    let header = "#ifndef _QUEUE_H\n#include \"cidl_gen.h\"\nservice_global_info = {\n\tservice = queue,\n\
         \tdesc_close_subtree = true,\n\tdesc_dep_create_same = true,\n\tdesc_dep_close_removal = true,\n\
         \tdesc_global = false,\n\tdesc_block = true,\n\tdesc_has_data = true,\n\tresc_has_data = true,\n};\n\
         typedef unsigned short tag_t;\ntypedef other_t under_t;\n\
         sm_creation(qsplit);\nsm_transition(qsplit, qget);\nsm_transition(qget, qget);\n\
         sm_transition(qsplit, qput);\nsm_transition(qget, qwait);\nsm_transition(qwait, qwake);\n\
         sm_transition(qwake, qnext);\nsm_transition(qget, qfree);\nsm_terminal(qfree);\nsm_block(qwait);\n\
         sm_wakeup(qwake);\ntemporal_sm(qnext);\n\
         desc_data_retval(qd_t, qid)\nqsplit(spdid_t desc_data(spdid), desc_data(parent_desc(qd_t parent)),\n\
         \tchar *desc_data(name), int desc_data(size_of(name, length)), tag_t desc_data(tag),\n\
         \tfd_t *desc_data(ret(file)));\n\
         int qget(spdid_t spdid, qd_t desc(qid), int *ret(where), int *desc_data_add(offset, ret(sz)));\n\
         resc_data(struct word, left) qput(spdid_t spdid, qd_t desc(qid), int resource_data(qid, cbid), void *data,\n\
         \tsigned char size_of(data, sz));\n\
         int qwait(parent_desc_component(spdid_t spdid), qd_t desc(qid), under_t desc_data(mark));\n\
         void qwake(qd_t desc(qid), void *ret(data), unsigned char size_of(data, most));\n\
         long long qnext(qd_t desc(qid));\nsize_t qcount(void);\n\
         int qfree(spdid_t spdid, qd_t desc_terminate(qid));\n#endif\n";
    let interface = interface(header);
    compiles("queue.h", &interface, &[], &["gcc", "clang", "g++"]);
    for mechanism in interface.mechanisms() {
        compiles("queue.h", &interface, &[mechanism], &["clang"]);
    }
}

#[test]
fn parameters_may_be_called_what_the_stubs_call_their_own() {
    // Names of variables, functions and fields in the generated code, a few in each function.
    let names = [
        "abort",
        "above",
        "before",
        "below",
        "bytes",
        "call",
        "client",
        "close",
        "count",
        "creator",
        "current",
        "data",
        "descriptor",
        "dispatch",
        "epoch",
        "error",
        "fields",
        "file",
        "flags",
        "follows",
        "glue",
        "id",
        "length",
        "lost",
        "made",
        "notes",
        "operation",
        "operations",
        "parent",
        "recover",
        "reply",
        "request",
        "restorer",
        "result",
        "server",
        "state",
        "step",
        "steps",
        "stop",
        "subtree",
        "turn",
        "upcall",
        "value",
        "walk",
        "wanted",
        "words",
    ];
    for (global, close) in [(true, "desc_close_subtree"), (false, "desc_close_self_only")] {
        let mut text = format!(
            "service_global_info = {{ service = names, {close} = true, desc_dep_create_same = true, \
             desc_dep_close_removal = true, desc_global = {global}, desc_has_data = true, resc_has_data = true }};\n"
        );
        for at in 0..names.len() {
            let [one, two, three, four, five, six] = std::array::from_fn(|further| names[(at + further) % names.len()]);
            text.push_str(&format!(
                "sm_creation(n{at}_make);\nsm_transition(n{at}_make, n{at}_set);\nsm_transition(n{at}_set, n{at}_end);\n\
                 sm_terminal(n{at}_end);\n\
                 desc_data_retval(long, {one}) n{at}_make(long parent_desc({two}), int desc_data({three}), int *ret({four}));\n\
                 resc_data(int, x) n{at}_set(long desc({one}), char *{two}, char size_of({two}, {three}), int *ret({four}),\n\
                 short {five});\n\
                 int n{at}_end(long desc_terminate({one}));\n\
                 int n{at}_get(long desc({one}), char *ret({two}), int size_of({two}, {three}), fd_t *ret({six}));\n"
            ));
        }
        compiles("names.h", &interface(&text), &[], &["gcc"]);
    }
}
