//! The tutorial, docs/plugins.md, does what it says: its commands are run and its files are made as they stand there.

use super::*;

const TUTORIAL: &str = include_str!("../../../../docs/plugins.md");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What a reader does once for a machine, which was done when this runs: clone, compilers, outlast itself.
const DONE: [&str; 5] = [
    "git clone … outlast && cd outlast",
    "cargo build --release --package outlast",
    "rustup target add wasm32-unknown-unknown",
    "export PATH=$PWD/target/release:$PATH",
    "sudo apt install clang lld wasi-libc libclang-rt-14-dev-wasm32 make",
];

/// A block of the text: how it is marked, and what is in it.
type Block = (&'static str, &'static str);

fn blocks() -> Vec<Block> {
    let parts: Vec<&str> = TUTORIAL.split("```").collect();
    assert!(parts.len() % 2 == 1, "a block is not closed");
    parts.into_iter().skip(1).step_by(2).map(|block| block.split_once('\n').unwrap()).collect()
}

/// Takes the next block, which is to be one that has this in it.
fn next(blocks: &mut impl Iterator<Item = Block>, kind: &str, with: &str) -> &'static str {
    let (is, text) = blocks.next().unwrap_or_else(|| panic!("no block with {with}"));
    assert!(is == kind && text.contains(with), "{is} {text}");
    text
}

/// A reader's shell.
struct Reader<'h> {
    home: &'h Home,
    /// The folder of the detector.
    folder: PathBuf,
}

impl Reader<'_> {
    /// Types a block, but for what was done before.
    fn types(&self, text: &str, place: &Path) -> Output {
        let lines: Vec<&str> = text.lines().filter(|line| !DONE.contains(line)).collect();
        // What others can write to is no place for a test's files.
        let text = lines.join("\n").replace("/tmp/spender", self.home.file("spender").to_str().unwrap());
        let outlast = Path::new(env!("CARGO_BIN_EXE_outlast")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{}:{path}", self.home.file("root/bin").display(), outlast.display());
        let mut command = Command::new("bash");
        command.args(["-c", &text]).current_dir(place).env("PATH", path).stdin(Stdio::null());
        command.env("OUTLAST_STATE_DIR", self.home.state()).env("OUTLAST_MODULES_DIR", self.home.file("modules"));
        // Where cargo installs, and what it has compiled before.
        command.env("CARGO_INSTALL_ROOT", self.home.file("root")).env_remove("RUSTFLAGS");
        command.env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("CARGO_TARGET_DIR");
        command.output().unwrap()
    }

    fn does(&self, text: &str, place: &Path) -> String {
        let output = self.types(text, place);
        assert!(output.status.success(), "{text}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a program that is given up in the end, once more if nobody has looked at it in time; what the log says.
    fn sees(&self, text: &str, place: &Path, what: &str) -> (Output, String) {
        let mut seen = Vec::new();
        for _ in 0..10 {
            let output = self.types(text, place);
            let log = String::from_utf8(self.types("outlast log it", place).stdout).unwrap();
            if log.contains(what) {
                return (output, log);
            }
            seen.push(log);
            self.does("outlast rm it", place);
        }
        panic!("{what}: {seen:#?}");
    }
}

#[test]
#[cfg_attr(not(wasm_target), ignore = "needs the Rust target wasm32-unknown-unknown")]
fn the_tutorial_does_what_it_says() {
    // Compiles what the detector needs as well, so that the reader waits only once.
    component("ceiling");
    let home = Home::new();
    let reader = Reader { home: &home, folder: home.file("crowd") };
    let (root, folder) = (Path::new(ROOT), reader.folder.clone());
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(root.join("target/plugins").canonicalize().unwrap(), folder.join("target")).unwrap();
    // The versions that are at hand already.
    fs::copy(root.join("examples/plugins/Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let mut blocks = blocks().into_iter();
    let setup = next(&mut blocks, "", "git clone");
    assert!(setup.lines().all(|line| DONE.contains(&line)), "{setup}");
    let tool = next(&mut blocks, "", "cargo install");
    reader.does(&format!("export CARGO_TARGET_DIR={ROOT}/target/plugins\n{tool}"), root);
    fs::write(folder.join("Cargo.toml"), next(&mut blocks, "toml", "name = \"crowd\"")).unwrap();
    reader.does(next(&mut blocks, "", "outlast-plugin wit"), &folder);
    fs::write(folder.join("src/lib.rs"), next(&mut blocks, "rust", "impl Guest for Crowd")).unwrap();
    let listed = reader.does(next(&mut blocks, "", "outlast module load crowd.wasm"), &folder);
    let row = listed.lines().find(|line| line.starts_with("crowd ")).unwrap_or_else(|| panic!("{listed}"));
    assert!(row.contains("plug-in"), "{listed}");

    let run = next(&mut blocks, "", "outlast run --name it --module crowd=2");
    let (output, log) = reader.sees(run, &folder, "3 threads are a crowd");
    assert!(log.contains("hangs: thread") && log.contains("recovered from SIGKILL"), "{log}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("done"), "{}", said(&output));
    assert!(said(&output).contains("gave") || log.contains("gave"), "{} {log}", said(&output));
    reader.does("outlast rm it", &folder);
    let may = reader.does(&run.replace("crowd=2", "crowd=5"), &folder);
    assert!(may.starts_with("one\ndone\n"), "{may}");
    reader.does("outlast rm it", &folder);
    let wrong = reader.types(&run.replace("crowd=2", "crowd=many"), &folder);
    assert!(said(&wrong).contains("write crowd=NUMBER"), "{}", said(&wrong));

    let in_c = next(&mut blocks, "", "--module spender=1000");
    let (_, log) = reader.sees(in_c, root, "it has taken more processor time than it may");
    assert!(log.contains("recovered from SIGKILL"), "{log}");
    assert_eq!(blocks.next(), None);

    let core = folder.join("target/wasm32-unknown-unknown/release/crowd.wasm");
    let refused = load(&home, &core, &["--name", "core"]);
    assert!(said(&refused).contains("a core module and no component yet"), "{}", said(&refused));
}
