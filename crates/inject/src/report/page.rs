//! One page with everything in it: it loads nothing.

use super::plots;
use super::table::{self, Row};
use crate::error::Error;
use crate::record::{Experiment, Head};

pub fn html(head: &Head, rows: &[Row], experiments: &[Experiment]) -> Result<String, Error> {
    let name = escaped(&head.name);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{name}</title><style>\
         body {{ font-family: sans-serif; margin: 2em; }} table {{ border-collapse: collapse; }} \
         td, th {{ padding: 0.15em 0.6em; border-bottom: 1px solid #ddd; text-align: left; }}</style></head><body>\n\
         <h1>{name}</h1>\n<p>Seed {}, {} faults in each setting. Shares with 95 % intervals (Wilson).</p>\n",
        head.seed, head.count
    );
    page += "<h2>Outcomes</h2>\n";
    page += &plots::outcomes(rows)?;
    page += "\n<table>\n";
    for (at, cells) in table::lines(rows).iter().enumerate() {
        let tag = if at == 0 { "th" } else { "td" };
        page += "<tr>";
        for cell in cells {
            page += &format!("<{tag}>{}</{tag}>", escaped(cell));
        }
        page += "</tr>\n";
    }
    page += "</table>\n";
    if let Some(plot) = plots::latencies(experiments)? {
        page += "<h2>Latencies</h2>\n";
        page += &plot;
    }
    page +=
        "\n<h2>What was not as expected</h2>\n<table>\n<tr><th>fault</th><th>setting</th><th>class</th><th>when</th>\
             <th>what</th><th>outcome</th><th>why</th></tr>\n";
    for e in experiments.iter().filter(|e| e.objection.is_some()) {
        let cells = [
            e.number.to_string(),
            e.setting.clone(),
            e.kind.name().into(),
            e.point.clone(),
            e.what.clone().unwrap_or_default(),
            e.outcome.name().into(),
            e.objection.clone().unwrap_or_default(),
        ];
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        page += &format!("<tr>{cells}</tr>\n");
    }
    page += "</table>\n</body></html>\n";
    Ok(page)
}

/// What targets print and campaigns are called is text, not markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
