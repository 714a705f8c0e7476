//! An interface as it is written: plain data, nothing resolved.

use crate::diagnostic::Span;

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

/// A C type, pointers counted apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// `unsigned long`, without stars; `const` is left out.
    pub text: String,
    pub pointers: usize,
    pub constant: bool,
    pub span: Span,
}

/// What stands in a parameter's place of a name: a name, or a word around others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    Name(Name),
    Word(Name, Vec<Term>),
}

impl Term {
    pub fn span(&self) -> Span {
        match self {
            Self::Name(name) | Self::Word(name, _) => name.span.clone(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Parameter {
    pub ty: Type,
    pub term: Term,
}

/// What stands before a function's name.
#[derive(Clone, Debug)]
pub enum Return {
    Plain(Type),
    /// `desc_data_retval(type, name)` or `resc_data(type, name)`.
    Named {
        word: Name,
        ty: Type,
        name: Name,
    },
}

#[derive(Clone, Debug)]
pub struct Function {
    pub returns: Return,
    pub name: Name,
    pub parameters: Vec<Parameter>,
}

/// `sm_transition(f, g);` and its like.
#[derive(Clone, Debug)]
pub struct Machine {
    pub word: Name,
    pub functions: Vec<Name>,
}

#[derive(Clone, Debug)]
pub struct Flag {
    pub name: Name,
    pub value: Name,
}

/// `typedef unsigned int u32_t;`
#[derive(Clone, Debug)]
pub struct Typedef {
    pub ty: Type,
    pub name: Name,
}

#[derive(Clone, Debug, Default)]
pub struct File {
    /// The span of `service_global_info`, once for each time it was there.
    pub info: Vec<Span>,
    pub flags: Vec<Flag>,
    pub machine: Vec<Machine>,
    pub typedefs: Vec<Typedef>,
    pub functions: Vec<Function>,
    pub length: usize,
}
