//! What a machine boots: a kernel package of Debian's, and a file system with the programs of an experiment.

use crate::guest::Kernel;
use crate::initramfs::Initramfs;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a machine does once it has booted.
pub struct Life<'a> {
    /// What its first process goes on with.
    pub script: &'a str,
    /// Variables for it, as a shell reads them.
    pub options: &'a str,
    /// C programs of the lab: `ledger` is /ledger there.
    pub programs: &'a [&'a str],
    /// Programs of this machine that it needs besides: they are in /bin there.
    pub tools: &'a [&'a Path],
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

/// Puts together what a machine boots, the `n`th one. `package` is a folder with an unpacked kernel package.
pub fn prepare(room: &Path, n: usize, package: &Path, life: &Life<'_>) -> Result<Kernel, Box<dyn Error>> {
    let find = |suffix: &str| -> Result<PathBuf, Box<dyn Error>> {
        let found = Command::new("find").arg(package).args(["-name", suffix]).output()?;
        let first = String::from_utf8_lossy(&found.stdout).lines().next().map(PathBuf::from);
        first.ok_or_else(|| {
            format!("there is no {suffix} in {}: unpack a kernel package there", package.display()).into()
        })
    };
    let mut archive = Initramfs::default();
    for folder in ["bin", "dev", "proc", "sys", "run", "disk", "tmp", "modules"] {
        archive.folder(folder);
    }
    archive.file("init", include_bytes!("../init"));
    archive.file("life", life.script.as_bytes());
    archive.file("options", life.options.as_bytes());
    archive.program("bin/busybox", Path::new("/bin/busybox"))?;
    for tool in life.tools {
        let name = tool.file_name().unwrap_or_default().to_string_lossy();
        archive.program(&format!("bin/{name}"), tool)?;
    }
    for name in life.programs {
        archive.program(name, &compile(room, name)?)?;
    }
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

/// One of the lab's own programs.
fn compile(room: &Path, name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let program = room.join(name);
    let source = format!("{}/programs/{name}.c", env!("CARGO_MANIFEST_DIR"));
    if Command::new("gcc").args(["-O2", "-Wall", "-o"]).arg(&program).arg(source).status()?.success() {
        Ok(program)
    } else {
        Err("gcc failed".into())
    }
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
