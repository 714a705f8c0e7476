//! The command line of outlast.
// Tests have an entry point of their own.
#![cfg_attr(not(test), no_main)]

mod arguments;
mod attach;
mod check;
mod cli;
mod commit;
mod completions;
mod daemon;
mod designation;
mod detach;
mod duration;
mod fork;
mod generations;
mod headers;
mod how;
mod inject;
mod installed;
mod listing;
mod log;
mod manual;
mod metrics;
mod module;
mod node;
mod output;
mod pin;
mod policy;
mod protection;
mod ps;
mod report;
mod resume;
mod rewind;
mod rm;
mod run;
mod state;
mod stop;
mod supervise;
mod switch;
mod top;
mod upgrade;

use clap::Parser;
use outlast_core::confine::Counting;

/// Modules may take so much memory, and no more.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The C entry point. Rust's own would ignore SIGPIPE and open closed descriptors before anybody could look, and the
/// programs we start must find both as they were.
#[cfg_attr(not(test), no_mangle)]
pub extern "C" fn main() -> libc::c_int {
    let status = match cli::Cli::try_parse_from(arguments::typed()) {
        Ok(cli) => cli.execute(),
        Err(e) => cli::usage(&e),
    };
    match status {
        Ok(status) => status,
        Err(e) => {
            outlast_supervisor::say::say(format_args!("{e}"));
            e.exit_status()
        }
    }
}
