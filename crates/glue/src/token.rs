//! The words and signs that an interface consists of.

use logos::Logos;

use crate::diagnostic::{Diagnostic, Span};

#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\n\f]+")]
#[logos(skip r"/\*([^*]|\*+[^*/])*\*+/")]
// To the end of the line: comments, and lines of the preprocessor (guards, includes), which may go on after a backslash.
#[logos(skip(r"//[^\n]*|#([^\n\\]|\\\r?\n|\\[^\r\n])*", allow_greedy = true))]
pub enum Token {
    #[regex("[A-Za-z_][A-Za-z0-9_]*")]
    Word,
    #[regex("[0-9][0-9A-Za-z]*")]
    Number,
    #[token("(")]
    Open,
    #[token(")")]
    Close,
    #[token("{")]
    Begin,
    #[token("}")]
    End,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token("=")]
    Equals,
    #[token("*")]
    Star,
    /// After the last one.
    Nothing,
}

impl Token {
    /// As a message names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Word => "a name",
            Self::Number => "a number",
            Self::Open => "`(`",
            Self::Close => "`)`",
            Self::Begin => "`{`",
            Self::End => "`}`",
            Self::Comma => "`,`",
            Self::Semicolon => "`;`",
            Self::Equals => "`=`",
            Self::Star => "`*`",
            Self::Nothing => "the end of the file",
        }
    }
}

/// All tokens, and complaints about bytes that belong to none, one for each run of them.
pub fn tokens(text: &str) -> (Vec<(Token, Span)>, Vec<Diagnostic>) {
    let mut tokens = Vec::new();
    let mut strange: Vec<Span> = Vec::new();
    for (token, span) in Token::lexer(text).spanned() {
        match (token, strange.last_mut()) {
            (Ok(token), _) => tokens.push((token, span)),
            (Err(()), Some(last)) if last.end == span.start => last.end = span.end,
            (Err(()), _) => strange.push(span),
        }
    }
    let complaints = strange.into_iter().map(|span| {
        if text[span.clone()].starts_with("/*") {
            Diagnostic::error(span, "a comment without an end", "begins here").hint("end it with `*/`")
        } else {
            Diagnostic::error(span, "this belongs to no interface", "not a name, a number or one of `(){},;=*`")
        }
    });
    (tokens, complaints.collect())
}
