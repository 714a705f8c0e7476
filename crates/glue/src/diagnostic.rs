//! What is wrong with an interface, where, what was expected, and what to do about it.

use std::ops::Range;

use codespan_reporting::diagnostic as report;
use codespan_reporting::files::SimpleFile;
use codespan_reporting::term;

/// Bytes of the text, from and to.
pub type Span = Range<usize>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Nothing is generated.
    Error,
    /// Code is generated, but something is probably not meant.
    Warning,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub message: String,
    /// Where, and what is said there; the first is the place itself, others explain it.
    pub labels: Vec<(Span, String)>,
    pub hints: Vec<String>,
}

impl Diagnostic {
    pub fn error(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            labels: vec![(span, label.into())],
            hints: Vec::new(),
        }
    }

    pub fn warning(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message, label) }
    }

    pub fn and(mut self, span: Span, label: impl Into<String>) -> Self {
        self.labels.push((span, label.into()));
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// All of them as text, for people; with colours where `coloured`.
pub fn render(name: &str, text: &str, diagnostics: &[Diagnostic], coloured: bool) -> String {
    let file = SimpleFile::new(name, text);
    let mut plain = String::new();
    let mut ansi = term::termcolor::Ansi::new(Vec::new());
    let config = term::Config::default();
    for diagnostic in diagnostics {
        let severity = match diagnostic.severity {
            Severity::Error => report::Severity::Error,
            Severity::Warning => report::Severity::Warning,
        };
        let labels = diagnostic.labels.iter().enumerate().map(|(at, (span, label))| {
            let style = if at == 0 { report::LabelStyle::Primary } else { report::LabelStyle::Secondary };
            report::Label::new(style, (), span.clone()).with_message(label)
        });
        let report = report::Diagnostic::new(severity)
            .with_message(&diagnostic.message)
            .with_labels(labels.collect())
            .with_notes(diagnostic.hints.iter().map(|hint| format!("hint: {hint}")).collect());
        // Writing to memory does not fail, and every span lies in the text.
        let _ = match coloured {
            true => term::emit_to_write_style(&mut ansi, &config, &file, &report),
            false => term::emit_to_string(&mut plain, &config, &file, &report),
        };
    }
    match coloured {
        true => String::from_utf8_lossy(&ansi.into_inner()).into_owned(),
        false => plain,
    }
}

/// The one of `words` that was probably meant by `word`.
pub fn similar<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    words
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= candidate.len().max(3) / 3)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance: how many letters are put in, left out or changed.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.bytes().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, to) in b.bytes().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (corner + usize::from(from != to)).min(above + 1).min(row[j] + 1);
            corner = above;
        }
    }
    row[b.len()]
}
