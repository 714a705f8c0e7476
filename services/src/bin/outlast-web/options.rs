//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{value_parser, Parser};

use crate::stubs::Stubs;

/// A web server of static files on six components, each of which may die at any moment.
///
/// The files below --root are loaded into the RAM file system when it starts; what changes on the disk afterwards is not seen. It
/// says on standard output where it listens, and serves until SIGINT or SIGTERM.
///
/// Exit status: 0 ended as told, 1 failed, 2 wrong usage.
#[derive(Parser)]
#[command(name = "outlast-web", version)]
pub struct Options {
    /// The address to listen on; port 0: any that is free.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: String,
    /// The folder to serve: at most 8192 files and folders of at most 32 MiB, 256 MiB together.
    #[arg(long, value_name = "DIR")]
    pub root: PathBuf,
    /// Which stubs the server calls its components by.
    #[arg(long, value_enum, default_value = "glue")]
    pub stubs: Stubs,
    /// Threads that serve.
    #[arg(long, value_name = "N", default_value = "4", value_parser = value_parser!(u32).range(1..=32))]
    pub workers: u32,
    /// Connections that are open at once; others wait to be accepted.
    #[arg(long, value_name = "N", default_value = "500", value_parser = value_parser!(u32).range(1..=2000))]
    pub connections: u32,
    /// How long a client may take for a request, for 64 KiB of a response, and between requests.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = humantime::parse_duration)]
    pub timeout: Duration,
    /// Adds a line for each request to this file.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Runs the content process, for a front with that number at the memory manager.
    #[arg(long, hide = true)]
    pub content: Option<u32>,
}
