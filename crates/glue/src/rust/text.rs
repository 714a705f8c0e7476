//! Lines with their indentation.

#[derive(Default)]
pub struct Text {
    text: String,
    depth: usize,
}

impl Text {
    pub fn line(&mut self, line: &str) {
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

    pub fn close(&mut self, line: &str) {
        self.depth -= 1;
        self.line(line);
    }

    pub fn done(self) -> String {
        format!("{}\n", self.text.trim_end())
    }
}
