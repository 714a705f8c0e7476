//! Tables and plots of a campaign's results.

mod table;
mod wilson;

use crate::error::Error;
use crate::record::{Experiment, Head};
use crate::results;
use std::path::Path;

/// A campaign's results.
pub struct Report {
    head: Head,
    experiments: Vec<Experiment>,
}

impl Report {
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let (head, mut experiments) = results::read(folder)?;
        experiments.sort_by_key(|e| (e.number, e.setting.clone()));
        Ok(Self { head, experiments })
    }

    pub fn text(&self) -> String {
        table::text(&self.head, &self.rows())
    }

    fn rows(&self) -> Vec<table::Row> {
        table::rows(&self.head, &self.experiments)
    }
}
