//! Lines with their indentation.

#[derive(Default)]
pub struct Text {
    text: String,
    depth: usize,
    /// Longer lines are broken behind a comma or an operator; 0: none is.
    width: usize,
}

impl Text {
    pub fn wrapped(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    pub fn line(&mut self, line: &str) {
        let (depth, mut rest) = (self.depth, line);
        while let Some(at) = self.end(rest) {
            self.one(&rest[..at]);
            rest = rest[at..].trim_start();
            self.depth = depth + 1;
        }
        self.one(rest);
        self.depth = depth;
    }

    /// Where a line that is too long ends; None if it is not, or cannot.
    fn end(&self, line: &str) -> Option<usize> {
        let room = self.width.saturating_sub(4 * self.depth);
        if self.width == 0 || line.len() <= room || line.starts_with(['/', ' ', '#']) {
            return None;
        }
        let separators = [", ", "|| ", "&& "].into_iter();
        separators.filter_map(|separator| line[..room].rfind(separator).map(|at| at + separator.len() - 1)).max()
    }

    fn one(&mut self, line: &str) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    pub fn blank(&mut self) {
        if !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// A line after which the next ones are indented.
    pub fn open(&mut self, line: &str) {
        self.line(line);
        self.depth += 1;
    }

    pub fn indent(&mut self) {
        self.depth += 1;
    }

    pub fn outdent(&mut self) {
        self.depth -= 1;
    }

    pub fn close(&mut self, line: &str) {
        self.depth -= 1;
        self.line(line);
    }

    pub fn done(self) -> String {
        format!("{}\n", self.text.trim_end())
    }
}
