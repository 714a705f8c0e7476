//! The guest's only file system besides the disk: what boots, as an archive that the kernel unpacks (cpio, "newc").

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// An archive that grows.
#[derive(Default)]
pub struct Initramfs {
    bytes: Vec<u8>,
    inode: u32,
}

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_755;

impl Initramfs {
    pub fn folder(&mut self, name: &str) {
        self.add(name, FOLDER, &[]);
    }

    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.add(name, FILE, content);
    }

    /// A program of this machine with the libraries that it needs.
    pub fn program(&mut self, name: &str, from: &Path) -> io::Result<()> {
        self.file(name, &fs::read(from)?);
        let output = Command::new("ldd").arg(from).output()?;
        for word in String::from_utf8_lossy(&output.stdout).split_whitespace().filter(|word| word.starts_with('/')) {
            let mut above = String::new();
            for part in word.trim_start_matches('/').split('/').rev().skip(1).collect::<Vec<_>>().iter().rev() {
                above = format!("{above}{part}");
                self.folder(&above);
                above.push('/');
            }
            self.file(word.trim_start_matches('/'), &fs::read(word)?);
        }
        Ok(())
    }

    /// The archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn add(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.inode += 1;
        let links = if mode == FOLDER { 2 } else { 1 };
        let head = [self.inode, mode, 0, 0, links, 0, content.len() as u32, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in head {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
