//! Functions and what their parameters are for.

use crate::diagnostic::{Diagnostic, Span};
use crate::model::{Function, Kind, Parameter, Type};
use crate::syntax::{self, File, Name, Return, Term};

use super::types::{resolve, BUFFER, FILE};

/// A call carries so many words each way.
const WORDS: usize = 8;

pub fn functions(file: &File, typedefs: &[(String, Type)], diagnostics: &mut Vec<Diagnostic>) -> Vec<Function> {
    let mut functions: Vec<Function> = Vec::new();
    for (at, function) in file.functions.iter().enumerate() {
        if let Some(first) = file.functions[..at].iter().find(|first| first.name.text == function.name.text) {
            let complaint = format!("`{}` is declared twice", function.name.text);
            diagnostics.push(
                Diagnostic::error(function.name.span.clone(), complaint, "again").and(first.name.span.clone(), "first"),
            );
            continue;
        }
        functions.push(one(function, typedefs, diagnostics));
    }
    if functions.is_empty() {
        let end = file.length..file.length;
        diagnostics.push(Diagnostic::error(end, "no function is declared", "the file ends here"));
    }
    functions
}

fn one(function: &syntax::Function, typedefs: &[(String, Type)], diagnostics: &mut Vec<Diagnostic>) -> Function {
    let (returns, creates, mut resource) = match &function.returns {
        Return::Plain(ty) => (ty, None, false),
        Return::Named { word, ty, name } => match word.text == "desc_data_retval" {
            true => (ty, Some(name.text.clone()), false),
            false => (ty, None, true),
        },
    };
    if returns.text == BUFFER {
        let complaint = Diagnostic::error(returns.span.clone(), "a buffer that is not lent", "this type");
        diagnostics.push(complaint.hint("a client lends one to be filled: `buffer_t data`"));
    }
    if returns.pointers > 0 {
        let complaint = Diagnostic::error(returns.span.clone(), "a pointer is returned", "does not reach a client");
        diagnostics.push(complaint.hint("components share no addresses; return a number, or bytes by `ret`"));
    }
    let mut parameters: Vec<Parameter> = Vec::new();
    let mut sizes = Vec::new();
    for parameter in &function.parameters {
        let mut meaning = Meaning::default();
        meaning.term(&parameter.term, diagnostics);
        let Some(name) = meaning.name else { continue };
        if parameters.iter().any(|other| other.name == name.text) {
            let complaint = format!("two parameters are called `{}`", name.text);
            diagnostics.push(Diagnostic::error(name.span.clone(), complaint, "again"));
        }
        resource |= meaning.resource;
        let is_length = meaning.size_of.is_some();
        if let Some(of) = meaning.size_of {
            sizes.push((parameters.len(), of));
        }
        let pointer = parameter.ty.pointers > 0;
        let out = matches!(meaning.kind, Kind::Out | Kind::OutAdd(_));
        if out != pointer && (out || meaning.kind != Kind::Word) {
            let (complaint, hint) = match out {
                true => ("what comes back needs a pointer", "as in `int *ret(length)`"),
                false => ("a descriptor or length is no pointer", "leave the star out"),
            };
            diagnostics.push(Diagnostic::error(parameter.ty.span.clone(), complaint, "this type").hint(hint));
        }
        let ty = resolve(&parameter.ty, typedefs);
        let kind = match meaning.kind {
            Kind::Out if ty.c == FILE => Kind::OutFile,
            _ if ty.c == FILE => {
                let complaint = Diagnostic::error(parameter.ty.span.clone(), "an open file that is given", "this type");
                diagnostics.push(complaint.hint("files come back only: `fd_t *ret(memory)`"));
                Kind::Out
            }
            Kind::Word if ty.c == BUFFER && !is_length && !pointer => Kind::Buffer,
            kind if ty.c == BUFFER => {
                let complaint = "a buffer that is not lent";
                let complaint = Diagnostic::error(parameter.ty.span.clone(), complaint, "this type");
                diagnostics.push(complaint.hint("the client gives it, and has it back: `buffer_t data`"));
                kind
            }
            kind => kind,
        };
        parameters.push(Parameter { name: name.text, ty, kind, remembered: meaning.remembered });
    }
    for (length, of) in sizes {
        match parameters.iter().position(|p| p.name == of.text).map(|at| (at, parameters[at].kind.clone())) {
            Some((bytes, Kind::Word)) => {
                parameters[bytes].kind = Kind::Bytes(length);
                parameters[length].kind = Kind::Length(bytes);
            }
            // Room for what comes back: how much is a word as any other.
            Some((bytes, Kind::Out)) => parameters[bytes].kind = Kind::OutBytes(length),
            _ => {
                let complaint = format!("`size_of` names no parameter `{}`", of.text);
                diagnostics.push(
                    Diagnostic::error(of.span, complaint, "not a parameter of this function")
                        .hint("`size_of(p, length)`: p points to the bytes"),
                );
            }
        }
    }
    pointers(function, &parameters, diagnostics);
    limits(function, &parameters, diagnostics);
    let name = function.name.text.clone();
    let returns = resolve(returns, typedefs);
    Function {
        name,
        returns,
        parameters,
        creates,
        terminal: false,
        block: false,
        wakeup: false,
        state: false,
        resource,
    }
}

fn pointers(function: &syntax::Function, parameters: &[Parameter], diagnostics: &mut Vec<Diagnostic>) {
    for (written, parameter) in function.parameters.iter().zip(parameters) {
        match (&parameter.kind, written.ty.pointers) {
            (Kind::Word, 1..) => {
                let complaint = format!("nothing says how long `{}` is", parameter.name);
                diagnostics.push(Diagnostic::error(written.ty.span.clone(), complaint, "a pointer").hint(format!(
                    "add a parameter `int size_of({}, length)`, or say that it comes back: `ret({})`",
                    parameter.name, parameter.name
                )));
            }
            (Kind::Bytes(_), 0) | (_, 2..) => {
                let complaint = format!("`{}` has {} star(s), not one", parameter.name, written.ty.pointers);
                diagnostics.push(Diagnostic::error(written.ty.span.clone(), complaint, "this type"));
            }
            _ => {}
        }
    }
}

fn limits(function: &syntax::Function, parameters: &[Parameter], diagnostics: &mut Vec<Diagnostic>) {
    let span = function.name.span.clone();
    let mut at_most = |count: usize, most: usize, what: &str| {
        if count > most {
            let complaint = format!("`{}` has {count} {what}, at most {most} can be", function.name.text);
            diagnostics.push(Diagnostic::error(span.clone(), complaint, "too many"));
        }
    };
    let of = |wanted: fn(&Kind) -> bool| parameters.iter().filter(|p| wanted(&p.kind)).count();
    at_most(parameters.len(), WORDS, "parameters");
    at_most(of(|kind| *kind == Kind::Id), 1, "descriptors");
    at_most(of(|kind| *kind == Kind::Parent), 1, "parents");
    at_most(of(|kind| matches!(kind, Kind::Bytes(_))), 1, "parameters of bytes");
    at_most(of(|kind| matches!(kind, Kind::OutBytes(_))), 1, "parameters of bytes that come back");
    at_most(of(|kind| *kind == Kind::OutFile), 1, "open files that come back");
}

/// What the words around a name say together.
struct Meaning {
    name: Option<Name>,
    kind: Kind,
    remembered: bool,
    /// Becomes data of the resource.
    resource: bool,
    size_of: Option<Name>,
}

impl Default for Meaning {
    fn default() -> Self {
        Self { name: None, kind: Kind::Word, remembered: false, resource: false, size_of: None }
    }
}

impl Meaning {
    fn term(&mut self, term: &Term, diagnostics: &mut Vec<Diagnostic>) {
        let (word, terms) = match term {
            Term::Name(name) => {
                self.name = Some(name.clone());
                return;
            }
            Term::Word(word, terms) => (word, terms),
        };
        let mut name_of = |term: &Term| match term {
            Term::Name(name) => Some(name.clone()),
            Term::Word(inner, _) => {
                let complaint = format!("expected a name, found `{}(…)`", inner.text);
                diagnostics.push(Diagnostic::error(inner.span.clone(), complaint, "no word can stand here"));
                None
            }
        };
        let last = &terms[terms.len() - 1];
        let kind = match word.text.as_str() {
            "desc_data" => {
                self.remembered = true;
                None
            }
            // The component of the parent is told by the channel that it came through; the word stays a word.
            "parent_desc_component" => None,
            "desc" | "desc_terminate" => Some(Kind::Id),
            "parent_desc" => Some(Kind::Parent),
            "ret" => Some(Kind::Out),
            "resource_data" => {
                name_of(&terms[0]);
                self.resource = true;
                None
            }
            "size_of" => {
                self.size_of = name_of(&terms[0]);
                None
            }
            _ => name_of(&terms[0]).map(|field| Kind::OutAdd(field.text)),
        };
        self.term(last, diagnostics);
        if let Some(kind) = kind {
            // `desc_data_add(field, ret(x))` and `desc(parent_desc(x))`: the outer word says more.
            let more = !matches!((&kind, &self.kind), (Kind::Id, Kind::Parent));
            if more {
                self.set(kind, word.span.clone(), diagnostics);
            }
        }
    }

    fn set(&mut self, kind: Kind, span: Span, diagnostics: &mut Vec<Diagnostic>) {
        let fits = matches!((&self.kind, &kind), (Kind::Word, _) | (Kind::Out, Kind::OutAdd(_)));
        if !fits {
            diagnostics.push(Diagnostic::error(span, "these words contradict each other", "against the inner one"));
        }
        self.kind = kind;
    }
}
