//! Prints, for ELF files, how many of their system call sites can be rewritten, how, and why the others cannot.
//!
//! `cargo run --release -p outlast-rewrite --example sites -- FILE…`

#[path = "../tests/support/mod.rs"]
mod support;

use outlast_rewrite::{plan, BranchMap, WriteStrategy};
use std::collections::BTreeMap;

fn main() {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let binaries = if arguments.is_empty() {
        support::binaries()
    } else {
        arguments.into_iter().filter_map(|path| support::Binary::open(path.into())).collect()
    };
    for binary in binaries {
        let mut lines = BTreeMap::<String, Vec<u64>>::new();
        for text in &binary.texts {
            let sites = text.sites();
            let code = text.code();
            let mut bits = vec![0; BranchMap::words(code.bytes.len())];
            let map = BranchMap::new(code, &mut bits).unwrap();
            for site in &sites {
                let line = match plan(&map, *site, &|_| false) {
                    Err(refusal) => format!("refused: {refusal}"),
                    Ok(plan) => {
                        let patch = plan.link(plan.at() & !0xffff, 0).unwrap();
                        let form = match plan.site() - plan.at() {
                            0 => "after",
                            _ if plan.overwritten().end == plan.site() => "before",
                            _ => "around",
                        };
                        let how = match patch.overwrite().strategy(&code, true) {
                            WriteStrategy::Swap8 { .. } => "8-byte store",
                            WriteStrategy::Swap16 { .. } => "16-byte store",
                            WriteStrategy::Breakpoint => "breakpoint",
                            WriteStrategy::NeedsParkedThreads => "parked threads",
                        };
                        format!("{form}, {how}")
                    }
                };
                lines.entry(line).or_default().push(*site);
            }
        }
        let all: usize = lines.values().map(Vec::len).sum();
        println!("{}: {all} sites", binary.path.display());
        for (line, sites) in lines {
            let some: Vec<_> = sites.iter().take(6).map(|site| format!("{site:x}")).collect();
            println!(
                "  {:5}  {line}{}",
                sites.len(),
                if line.starts_with('r') { format!("  ({})", some.join(" ")) } else { String::new() }
            );
        }
    }
}
