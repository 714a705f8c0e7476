//! `outlast-lab`: boots real kernels under QEMU, breaks them, and looks what the next boot finds.

mod disk;
mod guest;
mod initramfs;
mod nbd;
mod oracle;
mod power;

use clap::Parser;
use guest::Kernel;
use initramfs::Initramfs;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Switch machines off in the middle of everything, and boot them again
#[derive(Parser)]
struct Arguments {
    /// Folders with an unpacked kernel package each; boots take turns
    #[arg(long, required = true)]
    kernel: Vec<PathBuf>,
    /// Machines, each from the program's start to its end
    #[arg(long, default_value_t = 3)]
    machines: u32,
    /// Losses of power for each
    #[arg(long, default_value_t = 8)]
    losses: u32,
    /// Makes the choices the same again (not the moments at which they meet the program)
    #[arg(long)]
    seed: Option<u64>,
    /// Lines of the ledger that each keeps
    #[arg(long, default_value_t = 2000)]
    lines: usize,
    /// Options of `outlast run`
    #[arg(long, default_value = "--durable", allow_hyphen_values = true)]
    options: String,
    /// Lines of the ledger that may be told again after a loss of power
    #[arg(long, default_value_t = 1)]
    repeatable: usize,
    /// The program has a file of its own for every so many-th line: what it does to names has commits on the medium at once
    #[arg(long, default_value_t = 1)]
    pages: usize,
    /// Seconds before a loss of power: lines told earlier may not be told again  [default: any may, of those that may at all]
    #[arg(long)]
    within: Option<f64>,
    /// The outlast to test
    #[arg(long, default_value = "target/release/outlast")]
    outlast: PathBuf,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(|| std::process::id() as u64 ^ 0x6f75_746c);
    let room = tempfile::Builder::new().prefix("outlast-lab.").tempdir()?;
    let kernels = arguments
        .kernel
        .iter()
        .enumerate()
        .map(|(n, folder)| prepare(room.path(), n, folder, &arguments))
        .collect::<Result<Vec<_>, _>>()?;
    let within = arguments.within.map(Duration::try_from_secs_f64).transpose()?;
    let repeatable = power::Repeatable { lines: arguments.repeatable, within };
    let mut all = power::Tally::default();
    for machine in 0..arguments.machines {
        let own = seed.wrapping_add(u64::from(machine));
        let tally = power::round(room.path(), &kernels, own, arguments.losses, arguments.lines, &repeatable)
            .map_err(|what| format!("machine {machine}: {what}\nrun it again with --machines 1 --seed {own}"))?;
        println!(
            "machine {machine}, seed {own}: {} losses of power, {} of {} cached sectors lost, {} flushes, {} lines told again, at most {:?} old",
            tally.losses, tally.lost, tally.cached, tally.flushes, tally.repeated, tally.oldest
        );
        (all.losses, all.lost, all.cached) =
            (all.losses + tally.losses, all.lost + tally.lost, all.cached + tally.cached);
    }
    println!(
        "power: {} machines survived {} losses of power ({} of {} cached sectors lost), seed {seed}",
        arguments.machines, all.losses, all.lost, all.cached
    );
    Ok(())
}

/// What a disk and its file system need of a kernel, each after what it needs itself.
const MODULES: &[&str] = &[
    "crc16",
    "crc32c_generic",
    "mbcache",
    "jbd2",
    "ext4",
    "virtio",
    "virtio_ring",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "virtio_blk",
];

/// Puts together what a machine boots.
fn prepare(room: &Path, n: usize, package: &Path, arguments: &Arguments) -> Result<Kernel, Box<dyn Error>> {
    let find = |suffix: &str| -> Result<PathBuf, Box<dyn Error>> {
        let found = Command::new("find").arg(package).args(["-name", suffix]).output()?;
        let first = String::from_utf8_lossy(&found.stdout).lines().next().map(PathBuf::from);
        first.ok_or_else(|| {
            format!("there is no {suffix} in {}: unpack a kernel package there", package.display()).into()
        })
    };
    let mut archive = Initramfs::default();
    for folder in ["bin", "dev", "proc", "sys", "run", "disk", "tmp"] {
        archive.folder(folder);
    }
    archive.file("init", include_bytes!("../init"));
    archive.file(
        "options",
        format!("OPTIONS='{}'\nARGUMENTS='{} {}'\n", arguments.options, arguments.lines, arguments.pages).as_bytes(),
    );
    archive.program("bin/busybox", Path::new("/bin/busybox"))?;
    archive.program("bin/outlast", &arguments.outlast)?;
    let case = room.join("case");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/ledger.c");
    if !Command::new("gcc").args(["-O2", "-Wall", "-o"]).arg(&case).arg(source).status()?.success() {
        return Err("gcc failed".into());
    }
    archive.program("case", &case)?;
    archive.folder("modules");
    for (n, name) in MODULES.iter().enumerate() {
        // What is not there is part of the kernel.
        if let Ok(file) = find(&format!("{name}.ko*")) {
            archive.file(&format!("modules/{n:02}-{name}.ko"), &module(&file)?);
        }
    }
    let initramfs = room.join(format!("initramfs.{n}"));
    fs::write(&initramfs, archive.finish())?;
    Ok(Kernel { image: find("vmlinuz*")?, initramfs })
}

/// A module as `insmod` wants it.
fn module(file: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    if file.extension().is_none_or(|extension| extension != "xz") {
        return Ok(fs::read(file)?);
    }
    let output = Command::new("xz").arg("-dc").arg(file).output()?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err("xz failed".into())
    }
}
