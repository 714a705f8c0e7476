//! `outlast headers`: writes what programs that take part include.

use clap::Args;
use outlast_supervisor::Error;
use std::path::PathBuf;

const HEADERS: [(&str, &str); 2] = [
    ("outlast.h", include_str!("../../api/outlast.h")),
    ("outlast_sections.h", include_str!("../../api/outlast_sections.h")),
];

/// Write the headers for programs that take part into a folder
#[derive(Args)]
pub struct Headers {
    folder: PathBuf,
}

impl Headers {
    pub fn execute(self) -> Result<i32, Error> {
        let write = |(name, text): (&str, &str)| std::fs::write(self.folder.join(name), text);
        HEADERS.into_iter().try_for_each(write).map(|()| 0).map_err(Error::Output)
    }
}
