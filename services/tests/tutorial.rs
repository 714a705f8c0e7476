//! `docs/components.md`: its files are written and its commands run, in order.

#[path = "support/c.rs"]
mod c;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use outlast_glue::Mechanism;

/// The first of the tutorial's commands builds the library for C, which is not there for a moment then.
static LIBRARY: Mutex<()> = Mutex::new(());

const TEXT: &str = include_str!("../../docs/components.md");

/// A block between fences: what follows the first, and the lines. Before it, the last name of a file that the text mentions.
struct Block {
    language: String,
    text: String,
    file: Option<String>,
}

fn blocks() -> Vec<Block> {
    let (mut blocks, mut open, mut before) = (Vec::new(), None::<Block>, String::new());
    for line in TEXT.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                let names = before.split('`').skip(1).step_by(2).filter(|name| name.contains('.'));
                let file = names.last().map(str::to_string);
                open = Some(Block { language: language.to_string(), text: String::new(), file });
                before.clear();
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.text.extend([line, "\n"]),
            (None, None) => before.extend([line, "\n"]),
        }
    }
    blocks
}

fn shell(script: &str, folder: &Path) -> Output {
    // What is built is looked for where it is without these; nothing is fetched that is not there already.
    let mut command = Command::new("sh");
    command.args(["-euc", script]).current_dir(folder);
    command.env_remove("CARGO_TARGET_DIR").env("CARGO_NET_OFFLINE", "true");
    command.output().expect("a shell")
}

fn write(block: &Block, folder: &Path) -> PathBuf {
    let name = block.file.as_ref().expect("the text names the file");
    let file = folder.join(name);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::write(&file, &block.text).expect("a file");
    file
}

#[test]
fn what_the_tutorial_says_works_as_it_says() {
    let _whole = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner);
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("a folder");
    let folder = tempfile::tempdir().expect("a folder");
    let (mut scripts, mut files) = (Vec::new(), Vec::new());
    for block in blocks() {
        match block.language.as_str() {
            "sh" => scripts.push(block.text),
            // What is shown beside the tutorial's own files.
            "text" | "rust,ignore" => (),
            _ => {
                write(&block, folder.path());
                files.extend(block.file);
            }
        }
    }
    files.sort();
    assert_eq!(files, ["c/count.c", "c/counter.c", "counter.glue", "rust/src/bin/count.rs", "rust/src/main.rs"]);
    let (first, rest) = scripts.split_first().expect("commands");
    let script = format!("{first}\ncd '{}'\n{}", folder.path().display(), rest.concat());
    let output = shell(&script, &workspace);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said, "counted to 1000\n".repeat(4));
    assert!(std::fs::read_to_string(folder.path().join("counter.svg")).expect("a picture").contains(">counter_add<"));
}

#[test]
fn without_g1_in_c_what_was_counted_is_lost() {
    let _whole = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let files: Vec<PathBuf> = blocks()
        .iter()
        .filter(|block| block.file.as_deref().is_some_and(|name| name.starts_with("c")))
        .map(|block| write(block, folder.path()))
        .collect();
    let named = |name: &str| files.iter().find(|file| file.ends_with(name)).expect("it is in the text");
    for (without, expected) in [(None, true), (Some(Mechanism::G1), false)] {
        let stubs = tempfile::tempdir().expect("a folder");
        c::stubs(named("counter.glue"), &Vec::from_iter(without), stubs.path());
        let built = |name: &str, side: &str| {
            let output = stubs.path().join(format!("{name}-program"));
            let file = named(&format!("c/{name}.c"));
            let stub = stubs.path().join(format!("counter_{side}.c"));
            let sources = [file.as_path(), stub.as_path()];
            // It calls `kill`, which C alone does not have.
            c::compile("gcc", &["-D_POSIX_C_SOURCE=200809L"], stubs.path(), &sources, &output);
            output
        };
        let (component, client) = (built("counter", "server"), built("count", "client"));
        let output = Command::new(client).arg(component).output().expect("a client");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), expected, "{said}");
        assert!(expected || said.contains("counted wrongly: 1, not "), "{said}");
    }
}
