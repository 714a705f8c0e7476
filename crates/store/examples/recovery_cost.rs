//! What opening a store costs after its process was killed, by pages present, with a ring of commits to replay.
//!
//! `cargo run --release -p outlast-store --features std --example recovery_cost`

use outlast_store::{FileRegion, Params, Store, PAGE, SCRATCH_LEN};
use rustix::fs::{memfd_create, MemfdFlags};
use std::time::Instant;

const ADDRESS: u64 = 0x7000_0000_0000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:>8} {:>18} {:>12} {:>12}", "MiB", "commit 0, us", "open, us", "pieces");
    for mib in [1u64, 10, 100, 1000] {
        let file = memfd_create("store", MemfdFlags::CLOEXEC)?;
        let mut scratch = vec![0; SCRATCH_LEN as usize];
        let region = FileRegion::create(rustix::io::dup(&file)?, 256 << 30)?;
        let mut store = Store::format(region, &Params::default(), &mut scratch)?;
        let pages = (mib << 20) / PAGE;
        let start = Instant::now();
        store.begin();
        (0..pages).for_each(|n| store.page(ADDRESS + n * PAGE, &[n as u8; PAGE as usize]));
        store.commit()?;
        store.fold()?;
        let first = start.elapsed().as_micros();
        let mut n = 0;
        while store.stats().ring_used < 1 << 20 {
            store.begin();
            n = (n * 16807 + 7) % pages;
            store.page(ADDRESS + n * PAGE, &[1; PAGE as usize]);
            store.put(1, 1, &[2; 3000]);
            store.commit()?;
        }
        drop(store);
        let start = Instant::now();
        let (store, _) = Store::open(FileRegion::open(file)?, &mut scratch)?;
        let opened = start.elapsed().as_micros();
        let mut pieces = 0;
        store.runs(0, 1 << 47, &mut |_, _, _| pieces += 1);
        println!("{mib:>8} {first:>18} {opened:>12} {pieces:>12}");
    }
    Ok(())
}
