//! The evaluations of papers, repeated: their tables and figures, with outlast in the place of what they evaluate.

mod discount_checking;
mod progress;
mod report;
pub mod rmk;
mod section;
mod surroundings;

use crate::failure::Outcome;
use clap::Subcommand;
use std::path::Path;

/// Papers whose evaluation can be repeated.
#[derive(Subcommand)]
pub enum Paper {
    /// Discount Checking (Lowell and Chen, 1998): Table 2, Figure 2 and Figure 3; some twenty minutes
    DiscountChecking(discount_checking::Options),
    /// RMK (Wang, Kalbarczyk, Gu and Iyer, 2007): Tables 7, 8 and 9 and Figure 9; two hours
    Rmk(rmk::Options),
}

impl Paper {
    /// Measures, and writes what was found. Returns what is to be printed.
    pub fn execute(&self, outlast: &Path) -> Outcome<String> {
        match self {
            Self::DiscountChecking(options) => options.execute(outlast),
            Self::Rmk(options) => options.execute(outlast),
        }
    }
}
