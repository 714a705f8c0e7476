//! What both test binaries need: where the executables are, and the seed.

use std::env;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use outlast_cases::isolation::Workshop;

/// Choices made by the environment.
pub struct Run {
    pub workshop: Workshop,
    pub seed: u64,
}

impl Run {
    /// Reads `OUTLAST_BIN` and `OUTLAST_SEED`; ends the process with a message if they make no sense.
    /// The binary is `built` below the target directory if `OUTLAST_BIN` names none.
    pub fn from_environment(built: &str) -> Run {
        let one_case = Path::new(env!("CARGO_BIN_EXE_one_case"));
        let confine = Path::new(env!("CARGO_BIN_EXE_confine"));
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
        let outlast = env::var_os("OUTLAST_BIN").map_or(target.join(built), PathBuf::from);
        let workshop =
            Workshop::new(&outlast, confine, one_case).unwrap_or_else(|failure| refuse(&failure.to_string()));
        let seed = match env::var("OUTLAST_SEED") {
            Ok(text) => text.parse().unwrap_or_else(|_| refuse(&format!("OUTLAST_SEED is no number: {text}"))),
            Err(_) => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |t| t.as_secs()),
        };
        Run { workshop, seed }
    }
}

/// One line that runs a single test again.
pub fn again(binary: &str, seed: u64, name: &str) -> String {
    format!("OUTLAST_SEED={seed} cargo test --release -p outlast-cases --test {binary} -- --exact {name}")
}

/// A mistake on the command line or in the environment.
pub fn refuse(why: &str) -> ! {
    eprintln!("{why}");
    std::process::exit(2);
}
