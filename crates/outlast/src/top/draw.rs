//! The view on the screen.

use super::column::{Column, GAP};
use super::keys::HELP;
use super::view::{Mode, View, What};
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};
use ratatui::Frame;
use std::time::SystemTime;

/// Whether there are colours; without, there are bold and reversed letters.
#[derive(Clone, Copy)]
pub struct Theme(pub bool);

impl Theme {
    /// As <https://no-color.org> has it.
    pub fn wanted() -> Self {
        Self(std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()))
    }

    fn colour(self, colour: Color) -> Style {
        if self.0 {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    const HEAD: Style = Style::new().add_modifier(Modifier::REVERSED);
    const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);
    const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
}

pub fn draw(frame: &mut Frame, view: &View, theme: Theme) {
    let [top, body, bottom] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let time = time.split(['T', 'Z']).nth(1).unwrap_or_default();
    frame.render_widget(Paragraph::new(view.summary(time)).style(Theme::STRONG), top);
    match (&view.mode, is_inspecting(view)) {
        (Mode::Help, _) => help(frame, body),
        (_, Some(up)) => inspection(frame, body, view, up),
        _ => table(frame, body, view, theme),
    }
    frame.render_widget(footer(view, theme), bottom);
}

fn is_inspecting(view: &View) -> Option<usize> {
    match view.mode {
        Mode::Inspect(up) => Some(up),
        _ => None,
    }
}

fn table(frame: &mut Frame, area: Rect, view: &View, theme: Theme) {
    let columns = Column::that_fit(area.width);
    let head = columns.iter().map(|column| {
        let arrow = if *column != view.sort {
            ""
        } else if view.reverse {
            "^"
        } else {
            "v"
        };
        let style = if *column == view.sort { Theme::STRONG } else { Style::new() };
        cell(*column, format!("{}{arrow}", column.head())).style(style)
    });
    let rows = view.rows();
    let body = rows.iter().map(|row| {
        let style = match row.state() {
            _ if row.status.protected => Style::new(),
            "suspended" | "given-up" | "resumable" => theme.colour(Color::Red),
            _ => theme.colour(Color::Yellow),
        };
        Row::new(columns.iter().map(|column| cell(*column, column.cell(row)))).style(style)
    });
    // What is left goes to the name and to the event.
    let width = |column: &Column| match column {
        Column::Name => Constraint::Fill(2),
        Column::Event => Constraint::Fill(3),
        column => Constraint::Length(column.width()),
    };
    let table = Table::new(body, columns.iter().map(width))
        .header(Row::new(head).style(Theme::HEAD))
        .column_spacing(GAP)
        .row_highlight_style(Theme::CHOSEN);
    let mut state = TableState::default().with_selected(view.at());
    frame.render_stateful_widget(table, area, &mut state);
    if rows.is_empty() {
        let what =
            if view.filter.is_empty() { "nothing is protected: outlast run -- PROGRAM" } else { "no program has this" };
        let [_, line, _] =
            Layout::vertical([Constraint::Length(2), Constraint::Length(1), Constraint::Min(0)]).areas(area);
        frame.render_widget(Paragraph::new(what), line);
    }
}

fn cell(column: Column, text: String) -> Cell<'static> {
    let alignment = if column.is_figure() { Alignment::Right } else { Alignment::Left };
    Cell::from(Text::from(text).alignment(alignment))
}

fn help(frame: &mut Frame, area: Rect) {
    let keys = HELP.iter().map(|(keys, what)| Line::from(format!("{keys:18} {what}")));
    let columns = Column::ALL.chunks(2).map(|columns| {
        let each = columns.iter().map(|column| {
            let what = format!("{} {:10} {}", column.key(), column.head(), column.what());
            format!("{what:39}")
        });
        Line::from(each.collect::<String>())
    });
    frame.render_widget(Paragraph::new(keys.chain(columns).collect::<Vec<_>>()), area);
}

/// Its end, unless it was scrolled up.
fn inspection(frame: &mut Frame, area: Rect, view: &View, up: usize) {
    let height = usize::from(area.height);
    let end = view.lines.len().saturating_sub(up).max(height.min(view.lines.len()));
    let lines = &view.lines[end.saturating_sub(height)..end];
    frame.render_widget(Paragraph::new(lines.iter().map(|line| Line::from(line.as_str())).collect::<Vec<_>>()), area);
}

fn footer(view: &View, theme: Theme) -> Paragraph<'static> {
    let asks = theme.colour(Color::Yellow).patch(Theme::STRONG);
    match &view.mode {
        Mode::Confirm(act, name) => Paragraph::new(format!("{} y/n", act.question(name))).style(asks),
        Mode::Type(What::Filter, text) => Paragraph::new(format!("/{text}_")).style(asks),
        Mode::Type(What::Delay, text) => Paragraph::new(format!("seconds between two looks: {text}_")).style(asks),
        Mode::Type(What::Rewind(name), text) => {
            Paragraph::new(format!("{name} goes back to (age such as 30s, or generation): {text}_")).style(asks)
        }
        _ => match &view.said {
            Some(said) => Paragraph::new(said.clone()).style(Theme::STRONG),
            None => {
                let filter = if view.filter.is_empty() { String::new() } else { format!("  [/{}]", view.filter) };
                Paragraph::new(format!(
                    "q quit  h help  Enter inspect  c commit  k kill  R rewind  d detach  S stop{filter}"
                ))
            }
        },
    }
}
