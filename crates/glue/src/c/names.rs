//! Names and types as C has them.

use crate::model::{Function, Interface, Kind, Parameter, Type};

/// What the stubs call their own: a parameter of the same name gets a line below.
const OWN: [&str; 24] = [
    "abort",
    "above",
    "before",
    "call",
    "client",
    "close",
    "current",
    "descriptor",
    "epoch",
    "error",
    "fields",
    "follows",
    "glue",
    "made",
    "notes",
    "reply",
    "request",
    "restorer",
    "server",
    "stop",
    "subtree",
    "turn",
    "wanted",
    "words",
];

pub struct Names<'a>(pub &'a Interface);

impl Names<'_> {
    fn upper(&self) -> String {
        self.0.service.to_uppercase()
    }

    /// `LOCK_OP_LOCK_TAKE`
    pub fn operation(&self, function: &Function) -> String {
        format!("{}_OP_{}", self.upper(), function.name.trim_start_matches('_').to_uppercase())
    }

    /// `LOCK_FIELD_THREAD`
    pub fn field(&self, name: &str) -> String {
        format!("{}_FIELD_{}", self.upper(), name.to_uppercase())
    }

    /// Words that are remembered of a descriptor: arguments, then sums.
    pub fn fields(&self) -> Vec<String> {
        let words = self.0.fields().into_iter().filter(|field| !matches!(field.kind, Kind::Bytes(_)));
        words.map(|field| field.name.clone()).chain(self.0.sums().into_iter().map(str::to_string)).collect()
    }

    /// Where the result goes: named as the descriptor that is made, if one is.
    pub fn result(&self, function: &Function) -> String {
        let name = function.creates.as_deref().unwrap_or("result");
        let taken = function.parameters.iter().any(|parameter| parameter.name == name) || OWN.contains(&name);
        if taken {
            format!("{name}_")
        } else {
            name.to_string()
        }
    }

    /// `GLUE_FITS(int, word)`, or None where every word is one of the type.
    pub fn fits(&self, ty: &Type, word: &str) -> Option<String> {
        (!self.is_word(ty)).then(|| format!("GLUE_FITS({}, {word})", type_name(ty)))
    }

    fn is_word(&self, ty: &Type) -> bool {
        let defined = self.0.typedefs.iter().find(|(name, _)| *name == ty.c);
        match defined {
            Some((_, under)) => self.is_word(under),
            None => ty.rust == "u64" || ty.rust == "i64" || ty.opaque,
        }
    }

    /// The parameters of a function, as they are declared.
    pub fn parameters(&self, function: &Function) -> Vec<String> {
        let one = |p: &Parameter| {
            let (ty, name) = (pointed(p), c_name(&p.name));
            match p.kind {
                Kind::Word | Kind::Buffer | Kind::Id | Kind::Parent | Kind::Length(_) => {
                    format!("{} {name}", type_name(&p.ty))
                }
                Kind::Bytes(_) => format!("const {ty} *{name}"),
                Kind::OutBytes(_) => format!("{ty} *{name}, size_t *{name}_length"),
                Kind::Out | Kind::OutAdd(_) | Kind::OutFile => format!("{ty} *{name}"),
            }
        };
        function.parameters.iter().map(one).collect()
    }
}

/// What a parameter's pointer points to: bytes of no type stay that.
fn pointed(parameter: &Parameter) -> String {
    match (&parameter.kind, parameter.ty.c.as_str()) {
        (Kind::Bytes(_) | Kind::OutBytes(_), "void") => "void".to_string(),
        _ => type_name(&parameter.ty),
    }
}

/// A value of the type, as C names it.
pub fn type_name(ty: &Type) -> String {
    match ty.c.as_str() {
        "fd_t" => "int".to_string(),
        "buffer_t" => "uint32_t".to_string(),
        // What is returned of no type is a word, as in Rust.
        "void" => "int64_t".to_string(),
        _ if ty.opaque => ty.rust.clone(),
        c => c.to_string(),
    }
}

pub fn c_name(name: &str) -> String {
    if OWN.contains(&name) {
        format!("{name}_")
    } else {
        name.to_string()
    }
}

/// `A || B`, or None of none.
pub fn any(conditions: impl IntoIterator<Item = String>) -> Option<String> {
    let all: Vec<String> = conditions.into_iter().collect();
    (!all.is_empty()).then(|| all.join(" || "))
}
