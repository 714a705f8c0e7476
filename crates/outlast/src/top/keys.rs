//! What keys do to the view.

use super::act::Act;
use super::column::Column;
use super::view::{Mode, View, What};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key asks for beyond the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Nothing,
    Quit,
    Suspend,
    /// Look now.
    Look,
    Do(Act, String),
}

/// A page of whatever is scrolled.
const PAGE: usize = 10;

/// What h shows, with the columns' keys.
pub const HELP: [(&str, &str); 15] = [
    ("Up Down PgUp PgDn", "choose a program"),
    ("Enter", "its threads, options and log"),
    ("< >", "sort by the column on the left, on the right"),
    ("r", "the other way round"),
    ("/", "only programs with this text; Esc: all"),
    ("s", "seconds between two looks"),
    ("Space", "look now"),
    ("c", "commit now (asks)"),
    ("k", "kill it, to see it recovered (asks)"),
    ("d", "detach: it runs on without protection (asks)"),
    ("R", "rewind to an older state (asks)"),
    ("S", "stop: end it for good (asks)"),
    ("h ?", "this"),
    ("^Z", "suspend"),
    ("q", "quit"),
];

impl View {
    pub fn press(&mut self, key: KeyEvent) -> Wish {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Wish::Quit,
                KeyCode::Char('z') => Wish::Suspend,
                KeyCode::Char('l') => Wish::Look,
                _ => Wish::Nothing,
            };
        }
        self.said = None;
        match std::mem::replace(&mut self.mode, Mode::Table) {
            Mode::Table => self.in_table(key.code),
            Mode::Help => match key.code {
                KeyCode::Char('q' | 'h' | '?') | KeyCode::Esc | KeyCode::Enter => Wish::Nothing,
                _ => self.stay(Mode::Help),
            },
            Mode::Inspect(up) => self.in_inspection(key.code, up),
            Mode::Type(what, text) => self.typed(key.code, what, text),
            Mode::Confirm(act, name) => match key.code {
                KeyCode::Char('y' | 'Y') => Wish::Do(act, name),
                _ => Wish::Nothing,
            },
        }
    }

    fn stay(&mut self, mode: Mode) -> Wish {
        self.mode = mode;
        Wish::Nothing
    }

    fn in_table(&mut self, key: KeyCode) -> Wish {
        match key {
            KeyCode::Char('q') => return Wish::Quit,
            KeyCode::Char(' ') => return Wish::Look,
            KeyCode::Char('h' | '?') => self.mode = Mode::Help,
            KeyCode::Enter if self.chosen.is_some() => {
                self.mode = Mode::Inspect(0);
                return Wish::Look;
            }
            KeyCode::Up => self.move_by(-1),
            KeyCode::Down => self.move_by(1),
            KeyCode::PageUp => self.move_by(-(PAGE as isize)),
            KeyCode::PageDown => self.move_by(PAGE as isize),
            KeyCode::Home => self.move_by(isize::MIN),
            KeyCode::End => self.move_by(isize::MAX),
            KeyCode::Char('/') => self.mode = Mode::Type(What::Filter, self.filter.clone()),
            KeyCode::Char('s') => self.mode = Mode::Type(What::Delay, String::new()),
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('<') => self.sort_by(Column::ALL.len() - 1),
            KeyCode::Char('>') => self.sort_by(1),
            KeyCode::Char('r') => self.reverse = !self.reverse,
            KeyCode::Char(key) => match Column::ALL.iter().find(|column| column.key() == key) {
                Some(column) => (self.sort, self.reverse) = (*column, false),
                None => return self.act(key),
            },
            _ => (),
        }
        self.arrange();
        Wish::Nothing
    }

    /// By the column that is so many further on the right.
    fn sort_by(&mut self, further: usize) {
        let at = Column::ALL.iter().position(|column| *column == self.sort).unwrap_or(0);
        (self.sort, self.reverse) = (Column::ALL[(at + further) % Column::ALL.len()], false);
    }

    fn act(&mut self, key: char) -> Wish {
        let Some(name) = self.chosen.clone() else { return Wish::Nothing };
        let act = match key {
            'c' => Act::Commit,
            'k' => Act::Kill,
            'd' => Act::Detach,
            'S' => Act::Stop,
            'R' => return self.stay(Mode::Type(What::Rewind(name), String::new())),
            _ => return Wish::Nothing,
        };
        self.stay(Mode::Confirm(act, name))
    }

    fn in_inspection(&mut self, key: KeyCode, up: usize) -> Wish {
        let most = self.lines.len();
        let up = match key {
            KeyCode::Char('q') | KeyCode::Esc | KeyCode::Enter | KeyCode::Left => return Wish::Nothing,
            KeyCode::Up => up + 1,
            KeyCode::Down => up.saturating_sub(1),
            KeyCode::PageUp => up + PAGE,
            KeyCode::PageDown => up.saturating_sub(PAGE),
            KeyCode::Home => most,
            KeyCode::End => 0,
            KeyCode::Char(key @ ('c' | 'k' | 'd' | 'S' | 'R')) => return self.act(key),
            _ => up,
        };
        self.stay(Mode::Inspect(up.min(most)))
    }

    fn typed(&mut self, key: KeyCode, what: What, mut text: String) -> Wish {
        match key {
            KeyCode::Esc => {
                if what == What::Filter {
                    self.filter.clear();
                    self.arrange();
                }
                return Wish::Nothing;
            }
            KeyCode::Enter => return self.entered(what, &text),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(c) => text.push(c),
            _ => (),
        }
        if what == What::Filter {
            self.filter.clone_from(&text);
            self.arrange();
        }
        self.stay(Mode::Type(what, text))
    }

    fn entered(&mut self, what: What, text: &str) -> Wish {
        let refused = match what {
            What::Filter => None,
            What::Delay => match super::delay(text) {
                Ok(delay) => {
                    self.delay = delay;
                    return Wish::Look;
                }
                Err(why) => Some(why),
            },
            What::Rewind(name) => match text.parse() {
                Ok(wanted) => return self.stay(Mode::Confirm(Act::Rewind(wanted), name)),
                Err(why) => Some(why),
            },
        };
        self.said = refused;
        Wish::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn press(view: &mut View, keys: &str) -> Wish {
        let mut last = Wish::Nothing;
        for c in keys.chars() {
            let code = if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) };
            last = view.press(KeyEvent::new(code, KeyModifiers::NONE));
        }
        last
    }

    fn view() -> View {
        let mut view = View::new(Column::Name, false, String::new(), Duration::from_secs(2));
        view.chosen = Some("it".into());
        view
    }

    #[test]
    fn nothing_is_done_without_a_yes() {
        for (key, act) in [("c", Act::Commit), ("k", Act::Kill), ("d", Act::Detach), ("S", Act::Stop)] {
            let mut view = view();
            assert_eq!(press(&mut view, key), Wish::Nothing);
            assert_eq!(press(&mut view, "n"), Wish::Nothing);
            assert_eq!(view.mode, Mode::Table);
            // Nobody is chosen any more, since there are no rows; who is asked about stays the same.
            view.chosen = Some("it".into());
            assert_eq!(press(&mut view, &format!("{key}y")), Wish::Do(act, "it".into()));
        }
        let wanted = outlast_supervisor::generations::Wanted::Age(Duration::from_secs(30));
        assert_eq!(press(&mut view(), "R30s\ny"), Wish::Do(Act::Rewind(wanted), "it".into()));
        assert_eq!(press(&mut view(), "R30s\nn"), Wish::Nothing);
    }

    #[test]
    fn keys_sort_and_turn_round() {
        let mut view = view();
        press(&mut view, "E");
        assert_eq!((view.sort, view.reverse), (Column::Recoveries, false));
        press(&mut view, "r>");
        assert_eq!((view.sort, view.reverse), (Column::Rollbacks, false));
        press(&mut view, "N<");
        assert_eq!(view.sort, Column::Event);
    }

    #[test]
    fn what_is_typed_is_no_command() {
        let mut view = view();
        assert_eq!(press(&mut view, "/quiet\n"), Wish::Nothing);
        assert_eq!(view.filter, "quiet");
        assert_eq!(press(&mut view, "s0.5\n"), Wish::Look);
        assert_eq!(view.delay, Duration::from_millis(500));
        press(&mut view, "s0\n");
        assert!(view.said.is_some() && view.delay == Duration::from_millis(500));
    }
}
