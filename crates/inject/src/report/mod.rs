//! Tables and plots of a campaign's results.

mod csv;
mod gain;
pub mod markdown;
mod page;
mod plots;
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

    pub fn csv(&self) -> String {
        csv::text(&self.rows())
    }

    /// Everything, for programs: the campaign, rows, what settings gain, and experiments.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "campaign": self.head, "rows": self.rows(), "gains": self.gains(), "experiments": self.experiments
        })
    }

    /// A page with tables and plots that needs nothing else.
    pub fn html(&self) -> Result<String, Error> {
        page::html(&self.head, &self.rows(), &self.experiments)
    }

    fn rows(&self) -> Vec<table::Row> {
        table::rows(&self.head, &self.experiments)
    }

    fn gains(&self) -> Vec<gain::Gain> {
        gain::gains(&self.head, &self.experiments)
    }
}
