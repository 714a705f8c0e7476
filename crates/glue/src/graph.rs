//! The state machine as a picture: states in rows by their distance from the creation, transitions as arrows.

use std::fmt::Write;

use crate::model::Interface;

const WIDTH: i64 = 190;
const HEIGHT: i64 = 34;
const ROW: i64 = 90;
const COLUMN: i64 = 250;
const MARGIN: i64 = 60;

pub fn svg(interface: &Interface) -> String {
    let places = places(interface);
    let across = places.iter().flatten().map(|(x, _)| x + WIDTH).max().unwrap_or(0) + MARGIN;
    let down = places.iter().flatten().map(|(_, y)| y + HEIGHT).max().unwrap_or(0) + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{across}\" height=\"{down}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<title>State machine of {}</title>\n<defs><marker id=\"arrow\" viewBox=\"0 0 10 10\" refX=\"9\" \
         refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 L10 5 L0 10z\"/></marker></defs>\n",
        interface.service
    );
    for &(from, to) in &interface.transitions {
        if let (Some(a), Some(b)) = (places[from], places[to]) {
            arrow(&mut svg, a, b);
        }
    }
    for (at, function) in interface.functions.iter().enumerate() {
        let Some((x, y)) = places[at] else { continue };
        let (kind, fill) = match (function.creates.is_some(), function.terminal, function.block, function.wakeup) {
            (true, ..) => ("creation", "#d8f0d8"),
            (_, true, ..) => ("terminal", "#e0e0e0"),
            (_, _, true, _) => ("block", "#f8dcd0"),
            (_, _, _, true) => ("wake-up", "#d4e4f8"),
            _ => ("", "#ffffff"),
        };
        let (middle, base) = (x + WIDTH / 2, y + HEIGHT / 2 + 4);
        let _ = writeln!(
            svg,
            "<g><rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\" fill=\"{fill}\" stroke=\"black\"/>\
             <text x=\"{middle}\" y=\"{base}\" text-anchor=\"middle\">{}</text>\
             <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" font-size=\"10\" fill=\"#555\">{kind}</text></g>",
            function.name,
            y - 4
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Upper left corners of the states; None for functions that are none.
fn places(interface: &Interface) -> Vec<Option<(i64, i64)>> {
    let mut rows: Vec<i64> = Vec::new();
    let mut places = vec![None; interface.functions.len()];
    for (at, function) in interface.states() {
        let row = if function.creates.is_some() { 0 } else { interface.walk(at).len() };
        rows.resize(rows.len().max(row + 1), 0);
        places[at] = Some((MARGIN + rows[row] * COLUMN, MARGIN / 2 + row as i64 * ROW));
        rows[row] += 1;
    }
    places
}

fn arrow(svg: &mut String, (ax, ay): (i64, i64), (bx, by): (i64, i64)) {
    let path = if (ax, ay) == (bx, by) {
        // To itself: a loop at the right side.
        let (x, y) = (ax + WIDTH, ay + HEIGHT / 2);
        format!("M{x} {} C{} {}, {} {}, {x} {}", y - 8, x + 45, y - 30, x + 45, y + 30, y + 8)
    } else if by > ay {
        format!("M{} {} L{} {}", ax + WIDTH / 2, ay + HEIGHT, bx + WIDTH / 2, by - 14)
    } else {
        // Upwards or sideways: around the left side.
        let out = ax.min(bx) - 45;
        let (from, to) = (ay + HEIGHT / 2, by + HEIGHT / 2);
        format!("M{ax} {from} C{out} {from}, {out} {to}, {bx} {to}")
    };
    let _ = writeln!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"black\" marker-end=\"url(#arrow)\"/>");
}
