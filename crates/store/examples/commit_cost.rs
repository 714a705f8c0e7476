//! What a commit costs, by recently dirtied pages: each has one changed line of 64 bytes, and a context of 3 KiB is put.
//!
//! `cargo run --release -p outlast-store --features std --example commit_cost`

use outlast_store::{FileRegion, Page, Params, Store, PAGE, SCRATCH_LEN};
use std::time::Instant;

const ADDRESS: u64 = 0x7000_0000_0000;
const COMMITS: usize = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = rustix::fs::memfd_create("store", rustix::fs::MemfdFlags::CLOEXEC)?;
    let region = FileRegion::create(file, 256 << 30)?;
    let mut scratch = vec![0; SCRATCH_LEN as usize];
    let mut store = Store::format(region, &Params::default(), &mut scratch)?;
    let context = [7; 3 << 10];
    println!("{:>5} {:>14} {:>14} {:>14} {:>14}", "pages", "median ns", "mean ns", "with folds ns", "fold us");
    for pages in [0usize, 1, 4, 16, 64] {
        let mut memory: Vec<Page> = vec![[1; PAGE as usize]; pages];
        let mut shadow = memory.clone();
        store.begin();
        memory.iter().enumerate().for_each(|(n, page)| store.page(ADDRESS + n as u64 * PAGE, page));
        store.commit()?;
        let (mut times, mut folding, mut folds) = (Vec::with_capacity(COMMITS), 0, 0);
        for round in 0..COMMITS {
            memory.iter_mut().for_each(|page| page[round % 4096] = page[round % 4096].wrapping_add(1));
            let start = Instant::now();
            store.begin();
            for (n, (page, shadow)) in memory.iter().zip(&mut shadow).enumerate() {
                // SAFETY: two live pages, apart from each other and from the store.
                unsafe { store.diff(ADDRESS + n as u64 * PAGE, page, shadow) };
            }
            store.put(1, 1, &context);
            store.commit()?;
            times.push(start.elapsed().as_nanos() as u64);
            if store.wants_fold() {
                let start = Instant::now();
                store.fold()?;
                folding += start.elapsed().as_nanos() as u64;
                folds += 1;
            }
        }
        let sum: u64 = times.iter().sum();
        times.sort_unstable();
        let mean = sum / COMMITS as u64;
        let all = (sum + folding) / COMMITS as u64;
        println!("{pages:>5} {:>14} {mean:>14} {all:>14} {:>14}", times[COMMITS / 2], folding / folds.max(1) / 1000);
    }
    Ok(())
}
