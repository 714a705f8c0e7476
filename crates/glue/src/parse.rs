//! From tokens to syntax. After an error it goes on behind the next `;`, so that one run finds them all.

use crate::diagnostic::{similar, Diagnostic, Span};
use crate::syntax::{File, Flag, Function, Machine, Name, Parameter, Return, Term, Type, Typedef};
use crate::token::{tokens, Token};

/// Words of the state machine, and how many functions each takes.
pub const MACHINE: [(&str, usize); 6] = [
    ("sm_creation", 1),
    ("sm_transition", 2),
    ("sm_terminal", 1),
    ("sm_block", 1),
    ("sm_wakeup", 1),
    ("temporal_sm", 1),
];

/// Words around a parameter's name, and how many terms each takes.
pub const PARAMETER: [(&str, usize); 9] = [
    ("desc", 1),
    ("desc_data", 1),
    ("desc_data_add", 2),
    ("parent_desc", 1),
    ("parent_desc_component", 1),
    ("desc_terminate", 1),
    ("size_of", 2),
    ("resource_data", 2),
    ("ret", 1),
];

/// More would be a mistake, and bounds the recursion.
const DEEPEST: usize = 8;

pub fn parse(text: &str) -> (File, Vec<Diagnostic>) {
    let (tokens, diagnostics) = tokens(text);
    let mut parser = Parser { text, tokens, at: 0, diagnostics, inner: None };
    let mut file = File { length: text.len(), ..File::default() };
    while parser.peek() != Token::Nothing {
        if let Err(diagnostic) = parser.item(&mut file) {
            parser.diagnostics.push(diagnostic);
            parser.recover();
        }
    }
    (file, parser.diagnostics)
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, Span)>,
    at: usize,
    diagnostics: Vec<Diagnostic>,
    /// The type that stood within the words of a parameter: `desc_data(parent_desc(long x))`.
    inner: Option<Type>,
}

type Parsed<T> = Result<T, Diagnostic>;

impl Parser<'_> {
    fn peek(&self) -> Token {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Token {
        self.tokens.get(self.at + ahead).map_or(Token::Nothing, |(token, _)| *token)
    }

    fn span(&self) -> Span {
        self.tokens.get(self.at).map_or(self.text.len()..self.text.len(), |(_, span)| span.clone())
    }

    fn word(&self) -> &str {
        &self.text[self.span()]
    }

    fn expected(&self, what: &str, after: &str) -> Diagnostic {
        let found = match self.peek() {
            Token::Word | Token::Number => format!("`{}`", self.word()),
            other => other.name().to_string(),
        };
        let complaint =
            Diagnostic::error(self.span(), format!("expected {what}, found {found}"), format!("expected {what}"));
        match self.at.checked_sub(1).and_then(|before| self.tokens.get(before)) {
            Some((_, before)) => complaint.and(before.clone(), format!("after {after}")),
            None => complaint,
        }
    }

    fn take(&mut self, token: Token, after: &str) -> Parsed<Span> {
        if self.peek() != token {
            return Err(self.expected(token.name(), after));
        }
        let span = self.span();
        self.at += 1;
        Ok(span)
    }

    fn name(&mut self, after: &str) -> Parsed<Name> {
        let span = self.take(Token::Word, after)?;
        Ok(Name { text: self.text[span.clone()].to_string(), span })
    }

    /// To behind the next `;`, and of `};` to behind that.
    fn recover(&mut self) {
        loop {
            match self.peek() {
                Token::Nothing => return,
                Token::Semicolon => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    fn item(&mut self, file: &mut File) -> Parsed<()> {
        if self.peek() == Token::Semicolon {
            self.at += 1;
            return Ok(());
        }
        if self.peek() != Token::Word {
            return Err(self.expected("a declaration", "this"));
        }
        match (self.word(), self.peek_at(1)) {
            ("service_global_info", _) => self.info(file),
            ("typedef", _) => {
                self.at += 1;
                let ty = self.ty("`typedef`")?;
                let name = self.name("the type")?;
                self.take(Token::Semicolon, "a typedef")?;
                file.typedefs.push(Typedef { ty, name });
                Ok(())
            }
            (word, Token::Open) if word.starts_with("sm_") || word == "temporal_sm" => self.machine(file),
            (_, Token::Begin | Token::Equals) => {
                let word = self.word().to_string();
                let complaint = Diagnostic::error(self.span(), format!("`{word}` has no body"), "unknown here");
                Err(complaint.hint("only `service_global_info = { … };` has one"))
            }
            _ => self.function(file),
        }
    }

    fn info(&mut self, file: &mut File) -> Parsed<()> {
        file.info.push(self.span());
        self.at += 1;
        self.take(Token::Equals, "`service_global_info`")?;
        self.take(Token::Begin, "`=`")?;
        while self.peek() == Token::Word {
            let name = self.name("`{`")?;
            self.take(Token::Equals, "the property")?;
            let value = self.name("`=`")?;
            file.flags.push(Flag { name, value });
            match self.peek() {
                Token::Comma => self.at += 1,
                Token::End => {}
                _ => return Err(self.expected("`,` or `}`", "a property")),
            }
        }
        self.take(Token::End, "the properties")?;
        self.take(Token::Semicolon, "`}`")?;
        Ok(())
    }

    fn machine(&mut self, file: &mut File) -> Parsed<()> {
        let word = self.name("this")?;
        let Some(&(_, count)) = MACHINE.iter().find(|(known, _)| *known == word.text) else {
            let complaint =
                Diagnostic::error(word.span, format!("unknown word `{}`", word.text), "no word of a state machine");
            return Err(match similar(&word.text, MACHINE.map(|(known, _)| known)) {
                Some(meant) => complaint.hint(format!("did you mean `{meant}`?")),
                None => complaint.hint(format!("there are {}", MACHINE.map(|(known, _)| known).join(", "))),
            });
        };
        self.take(Token::Open, "the word")?;
        let mut functions = vec![self.name("`(`")?];
        while self.peek() == Token::Comma {
            self.at += 1;
            functions.push(self.name("`,`")?);
        }
        self.take(Token::Close, "a function")?;
        self.take(Token::Semicolon, "`)`")?;
        if functions.len() != count {
            let complaint = format!("`{}` takes {count} function(s), found {}", word.text, functions.len());
            self.diagnostics.push(Diagnostic::error(word.span, complaint, format!("takes {count}")));
        } else {
            file.machine.push(Machine { word, functions });
        }
        Ok(())
    }

    fn function(&mut self, file: &mut File) -> Parsed<()> {
        let returns = match (self.word(), self.peek_at(1)) {
            ("desc_data_retval" | "resc_data", Token::Open) => {
                let word = self.name("this")?;
                self.at += 1;
                let ty = self.ty_before(Token::Comma, "`(`")?;
                self.take(Token::Comma, "the type")?;
                let name = self.name("`,`")?;
                self.take(Token::Close, "the name")?;
                Return::Named { word, ty, name }
            }
            _ => Return::Plain(self.ty("this")?),
        };
        let name = self.name("the type")?;
        self.take(Token::Open, "the function's name")?;
        let mut parameters = Vec::new();
        let empty = self.peek() == Token::Close || (self.word() == "void" && self.peek_at(1) == Token::Close);
        if empty {
            self.at += usize::from(self.peek() != Token::Close);
        } else {
            loop {
                parameters.push(self.parameter()?);
                match self.peek() {
                    Token::Comma => self.at += 1,
                    Token::Close => break,
                    _ => return Err(self.expected("`,` or `)`", "a parameter")),
                }
            }
        }
        self.take(Token::Close, "the parameters")?;
        self.take(Token::Semicolon, "`)`")?;
        file.functions.push(Function { returns, name, parameters });
        Ok(())
    }

    fn parameter(&mut self) -> Parsed<Parameter> {
        let bare = self.peek() == Token::Word && self.peek_at(1) == Token::Open;
        let outer = if bare { None } else { Some(self.ty("`(` or `,`")?) };
        self.inner = None;
        let term = self.term(0)?;
        match outer.or(self.inner.take()) {
            Some(ty) => Ok(Parameter { ty, term }),
            None => Err(Diagnostic::error(term.span(), "a parameter without a type", "its type is missing")
                .hint("before the word or before the name: `long desc(x)` or `desc(long x)`")),
        }
    }

    /// As many words as leave one for a name, and stars.
    fn ty(&mut self, after: &str) -> Parsed<Type> {
        self.ty_before(Token::Word, after)
    }

    fn ty_before(&mut self, next: Token, after: &str) -> Parsed<Type> {
        let start = self.span();
        let (mut words, mut pointers, mut constant) = (Vec::new(), 0, false);
        let mut end = start.end;
        while self.peek() == Token::Word
            && (matches!(self.peek_at(1), Token::Word | Token::Star) || self.peek_at(1) == next)
        {
            end = self.span().end;
            match self.word() {
                "const" => constant = true,
                word => words.push(word.to_string()),
            }
            self.at += 1;
        }
        while self.peek() == Token::Star {
            end = self.span().end;
            pointers += 1;
            self.at += 1;
        }
        if words.is_empty() {
            return Err(match self.peek() {
                Token::Word => Diagnostic::error(
                    self.span(),
                    format!("expected a type and a name, found only `{}`", self.word()),
                    "type or name is missing",
                )
                .hint("as in C: `unsigned long desc(lock)`"),
                _ => self.expected("a type", after),
            });
        }
        Ok(Type { text: words.join(" "), pointers, constant, span: start.start..end })
    }

    fn term(&mut self, depth: usize) -> Parsed<Term> {
        let name = self.name("the type")?;
        if self.peek() != Token::Open {
            return Ok(Term::Name(name));
        }
        let Some(&(_, count)) = PARAMETER.iter().find(|(known, _)| *known == name.text) else {
            let complaint =
                Diagnostic::error(name.span, format!("unknown word `{}`", name.text), "no word of a parameter");
            return Err(match similar(&name.text, PARAMETER.map(|(known, _)| known)) {
                Some(meant) => complaint.hint(format!("did you mean `{meant}`?")),
                None => complaint.hint(format!("there are {}", PARAMETER.map(|(known, _)| known).join(", "))),
            });
        };
        if depth == DEEPEST {
            return Err(Diagnostic::error(name.span, "words nested too deeply", "at most eight"));
        }
        self.at += 1;
        let mut terms = Vec::new();
        loop {
            // In `size_of(char *p, len)` and `desc_data(parent_desc(long x))` a type may stand before the name.
            let typed = |p: &Self| {
                p.peek() == Token::Star || p.peek() == Token::Word && matches!(p.peek_at(1), Token::Word | Token::Star)
            };
            if typed(self) {
                self.inner = Some(self.ty("`(`")?);
            }
            terms.push(self.term(depth + 1)?);
            match self.peek() {
                Token::Comma => self.at += 1,
                Token::Close => break,
                _ => return Err(self.expected("`,` or `)`", "a name")),
            }
        }
        self.at += 1;
        if terms.len() != count {
            let complaint = format!("`{}` takes {count} name(s), found {}", name.text, terms.len());
            return Err(Diagnostic::error(name.span, complaint, format!("takes {count}")));
        }
        Ok(Term::Word(name, terms))
    }
}
