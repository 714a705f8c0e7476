//! Prints what planning costs, and what a call through a stub costs beside one without. Figures, not a test.
//!
//! `cargo run --release -p outlast-rewrite --example speed`

#[path = "../tests/support/built.rs"]
mod built;
#[path = "../tests/support/machine.rs"]
mod machine;
#[path = "../tests/support/mod.rs"]
mod support;

use built::{plan_in, Built};
use outlast_rewrite::{plan, BranchMap, Code};
use std::hint::black_box;
use std::time::Instant;

/// Median time of a call of `work`, of 31, in nanoseconds.
fn median(mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..31)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_nanos() as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    for binary in support::binaries() {
        let Some(text) = binary.texts.iter().max_by_key(|text| text.bytes.len()) else { continue };
        let (code, sites) = (text.code(), text.sites());
        if sites.is_empty() {
            continue;
        }
        let len = text.bytes.len() as f64;
        let mut bits = vec![0; BranchMap::words(text.bytes.len())];
        let pass = median(|| {
            black_box(BranchMap::new(code, &mut bits));
        });
        let map = BranchMap::again(code, &bits).unwrap();
        let all = median(|| {
            sites.iter().for_each(|site| {
                black_box(plan(&map, *site, &|_| false)).ok();
            })
        });
        println!(
            "{}: {:.2} MB, map {:.0} us ({:.2} GB/s); {} sites, {:.1} us a plan",
            binary.path.display(),
            len / 1e6,
            pass / 1e3,
            len / pass,
            sites.len(),
            all / 1e3 / sites.len() as f64
        );
    }
    calls();
}

/// getppid, without and with a stub.
fn calls() {
    let memory = machine::Memory::new(1 << 17);
    let built = Built::new(memory.address, &[0xb8, 110, 0, 0, 0], &[0x48, 0x3d, 0, 0xf0, 0xff, 0xff, 0xc3]);
    // SAFETY: fresh memory.
    unsafe { machine::write(memory.address, &built.bytes) };
    let code = Code { address: memory.address, bytes: memory.bytes() };
    let patch =
        plan_in(&code, built.site, &|_| false).unwrap().link(memory.address + (1 << 16), machine::gate()).unwrap();
    // SAFETY: the code is a function without arguments that returns a number.
    let function: extern "C" fn() -> i64 = unsafe { std::mem::transmute(patch.at()) };
    let time = || {
        median(|| {
            (0..10_000).for_each(|_| {
                black_box(function());
            })
        }) / 10_000.0
    };
    let plain = time();
    // SAFETY: no other thread knows this memory.
    unsafe { machine::apply(&patch) };
    println!("getppid {plain:.1} ns, through stub and gate {:.1} ns", time());
}
