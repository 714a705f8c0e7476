//! The command `glue`.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use outlast_glue::{c, diagnostic, graph, rust, understand, Diagnostic, Interface, Severity};
use serde_json::json;

const HEADER: &str = include_str!("../../glue-c/outlast_glue.h");
const PAGE: &str = include_str!("../../glue-c/outlast_glue.h.3");

/// Compiles interfaces of components to stubs that recover what a component's clients had there when it is micro-rebooted.
#[derive(Parser)]
#[command(name = "glue", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Says what is wrong with an interface; exit status 1 if it cannot be compiled.
    Check {
        file: PathBuf,
        /// Machine-readable: a list of what was found, with lines and columns from 1.
        #[arg(long)]
        json: bool,
    },
    /// Writes the stubs of an interface, client's and server's.
    Compile {
        file: PathBuf,
        #[arg(long, value_enum, default_value = "rust")]
        lang: Language,
        /// The folder to write to.
        #[arg(short, long, default_value = ".")]
        output: PathBuf,
    },
    /// Draws the state machine of an interface as SVG, to standard output or a file.
    Graph {
        file: PathBuf,
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Prints completions for a shell.
    Completions { shell: clap_complete::Shell },
    /// Writes the header that stubs in C include.
    Headers {
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
    /// Writes manual pages.
    Manual {
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Language {
    Rust,
    C,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("glue: {message}");
            ExitCode::FAILURE
        }
    }
}

/// On standard output, which somebody may have read enough of.
fn put(text: &str) -> Result<(), String> {
    let mut output = std::io::stdout();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(format!("cannot write: {e}")),
        _ => Ok(()),
    }
}

/// False: the interface has errors, which have been shown.
fn run(command: Command) -> Result<bool, String> {
    match command {
        Command::Check { file, json } => {
            let text = read(&file)?;
            let (interface, diagnostics) = understand(&text);
            match json {
                true => put(&format!("{}\n", as_json(&text, &diagnostics)))?,
                false => show(&file, &text, &diagnostics),
            }
            Ok(interface.is_some())
        }
        Command::Compile { file, lang, output } => {
            let Some(interface) = understood(&file)? else { return Ok(false) };
            let source = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            match lang {
                Language::Rust => {
                    let name = format!("{}.rs", interface.service);
                    write(&output.join(name), &rust::generate(&interface, &source, &[]))?;
                }
                Language::C => {
                    for file in c::generate(&interface, &source, &[]) {
                        write(&output.join(file.name), &file.text)?;
                    }
                }
            }
            Ok(true)
        }
        Command::Graph { file, output } => {
            let Some(interface) = understood(&file)? else { return Ok(false) };
            let picture = graph::svg(&interface);
            match output {
                Some(path) => write(&path, &picture)?,
                None => put(&picture)?,
            }
            Ok(true)
        }
        Command::Headers { folder } => {
            write(&folder.join("outlast_glue.h"), HEADER)?;
            Ok(true)
        }
        Command::Completions { shell } => {
            let mut command = <Cli as clap::CommandFactory>::command();
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "glue", &mut script);
            put(&String::from_utf8_lossy(&script))?;
            Ok(true)
        }
        Command::Manual { folder } => {
            let command = <Cli as clap::CommandFactory>::command();
            clap_mangen::generate_to(command, &folder)
                .map_err(|e| format!("cannot write {}: {e}", folder.display()))?;
            write(&folder.join("outlast_glue.h.3"), PAGE)?;
            Ok(true)
        }
    }
}

fn read(file: &Path) -> Result<String, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    String::from_utf8(bytes).map_err(|_| format!("{} is not text (UTF-8): is it an interface?", file.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

fn understood(file: &Path) -> Result<Option<Interface>, String> {
    let text = read(file)?;
    let (interface, diagnostics) = understand(&text);
    show(file, &text, &diagnostics);
    Ok(interface)
}

fn show(file: &Path, text: &str, diagnostics: &[Diagnostic]) {
    let coloured = std::io::stderr().is_terminal();
    eprint!("{}", diagnostic::render(&file.to_string_lossy(), text, diagnostics, coloured));
}

fn as_json(text: &str, diagnostics: &[Diagnostic]) -> serde_json::Value {
    let place = |at: usize| {
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        (before.matches('\n').count() + 1, text[line_start..at].chars().count() + 1)
    };
    diagnostics
        .iter()
        .map(|d| {
            let (line, column) = d.labels.first().map_or((1, 1), |(span, _)| place(span.start));
            json!({
                "severity": if d.severity == Severity::Error { "error" } else { "warning" },
                "message": d.message,
                "line": line,
                "column": column,
                "label": d.labels.first().map(|(_, label)| label),
                "hints": d.hints,
            })
        })
        .collect()
}
