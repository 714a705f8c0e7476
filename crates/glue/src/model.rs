//! An interface as it is meant: names resolved, roles known. What the generators read.

use std::collections::VecDeque;

use serde::Serialize;

use crate::mechanism::Mechanism;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Parent {
    None,
    /// Made by the same component.
    Same,
    /// Made by another one.
    Different,
}

/// The properties of `service_global_info`.
#[derive(Clone, Debug, Serialize)]
pub struct Properties {
    pub close_subtree: bool,
    pub parent: Parent,
    /// A closed descriptor's tracking data stays for its children's sake.
    pub keep_closed: bool,
    pub global: bool,
    pub blocks: bool,
    pub descriptor_data: bool,
    pub resource_data: bool,
}

/// A C type that fits a machine word, or what a pointer points to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Type {
    pub c: String,
    pub rust: String,
    /// Neither C's nor defined in the file: a machine word that nobody looks into.
    pub opaque: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// A word that the client gives.
    Word,
    /// A shared buffer that the client lends; a word that is its number.
    Buffer,
    /// The descriptor that the call is about.
    Id,
    /// The parent of the descriptor that is created.
    Parent,
    /// Bytes that the client gives; the index of the parameter with their length.
    Bytes(usize),
    /// Length of the bytes in that parameter.
    Length(usize),
    /// A word that the server gives back.
    Out,
    /// Bytes that it gives back; the index of the parameter that says how many at most.
    OutBytes(usize),
    /// The same, and a field of the descriptor grows by it.
    OutAdd(String),
    /// An open file that it gives back.
    OutFile,
}

#[derive(Clone, Debug, Serialize)]
pub struct Parameter {
    pub name: String,
    pub ty: Type,
    pub kind: Kind,
    /// `desc_data`: needed to create the descriptor again.
    pub remembered: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Function {
    pub name: String,
    pub returns: Type,
    pub parameters: Vec<Parameter>,
    /// Returns a new descriptor, of this name.
    pub creates: Option<String>,
    pub terminal: bool,
    pub block: bool,
    pub wakeup: bool,
    /// A state of the state machine.
    pub state: bool,
    /// It changes data of the descriptor's resource.
    pub resource: bool,
}

impl Function {
    pub fn id(&self) -> Option<&Parameter> {
        self.parameters.iter().find(|p| p.kind == Kind::Id)
    }

    pub fn parent(&self) -> Option<&Parameter> {
        self.parameters.iter().find(|p| p.kind == Kind::Parent)
    }

    /// Parameters that a client gives, but for lengths, which go with their bytes.
    pub fn given(&self) -> impl Iterator<Item = &Parameter> {
        let kept = |p: &&Parameter| {
            !matches!(p.kind, Kind::Out | Kind::OutAdd(_) | Kind::OutBytes(_) | Kind::OutFile | Kind::Length(_))
        };
        self.parameters.iter().filter(kept)
    }

    /// Those that travel as words.
    pub fn words(&self) -> impl Iterator<Item = &Parameter> {
        self.given().filter(|p| !matches!(p.kind, Kind::Bytes(_)))
    }

    /// What comes back beside the result.
    pub fn outs(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters
            .iter()
            .filter(|p| matches!(p.kind, Kind::Out | Kind::OutAdd(_) | Kind::OutBytes(_) | Kind::OutFile))
    }

    /// Those that come back as words, in the order in which they do.
    pub fn out_words(&self) -> impl Iterator<Item = &Parameter> {
        self.outs().filter(|p| !matches!(p.kind, Kind::OutBytes(_) | Kind::OutFile))
    }

    pub fn adds(&self) -> bool {
        self.parameters.iter().any(|p| matches!(p.kind, Kind::OutAdd(_)))
    }

    pub fn buffers(&self) -> bool {
        self.parameters.iter().any(|p| p.kind == Kind::Buffer)
    }

    pub fn file(&self) -> Option<&Parameter> {
        self.parameters.iter().find(|p| p.kind == Kind::OutFile)
    }

    pub fn bytes(&self) -> Option<&Parameter> {
        self.parameters.iter().find(|p| matches!(p.kind, Kind::Bytes(_)))
    }

    /// Where the descriptor that it closes is among its words.
    pub fn closes(&self) -> Option<usize> {
        self.words().position(|p| self.terminal && p.kind == Kind::Id)
    }

    /// R0 makes this call again. Not: creations, which begin the walk or are another descriptor's; closings; and what left
    /// its effect in data that is brought back otherwise.
    pub fn replayed(&self) -> bool {
        self.state && self.creates.is_none() && !self.terminal && !self.adds() && !self.resource && self.id().is_some()
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Interface {
    pub service: String,
    pub properties: Properties,
    /// The index is the operation's number in a call.
    pub functions: Vec<Function>,
    pub transitions: Vec<(usize, usize)>,
    /// Defined in the file: name and C type.
    pub typedefs: Vec<(String, Type)>,
}

impl Interface {
    pub fn creators(&self) -> impl Iterator<Item = (usize, &Function)> {
        self.functions.iter().enumerate().filter(|(_, f)| f.creates.is_some())
    }

    pub fn states(&self) -> impl Iterator<Item = (usize, &Function)> {
        self.functions.iter().enumerate().filter(|(_, f)| f.state)
    }

    /// Calls that lead from a creation to `state`, the shortest way, `state` included and the creation not.
    pub fn walk(&self, state: usize) -> Vec<usize> {
        let starts: Vec<usize> = self.creators().map(|(at, _)| at).collect();
        self.shortest(&starts, state, |_| true).unwrap_or_default().into_iter().skip(1).collect()
    }

    /// Whether `op`, done to a descriptor in `state`, leaves it in the state `op`. It does along a transition, and along
    /// several unless one of those skipped is a wake-up: that would undo what another thread holds.
    pub fn follows(&self, state: usize, op: usize) -> bool {
        self.transitions
            .iter()
            .filter(|&&(from, _)| from == state)
            .any(|&(_, to)| self.shortest(&[to], op, |inner| !self.functions[inner].wakeup).is_some())
    }

    /// The shortest way, whose places before the last all please `through`.
    fn shortest(&self, starts: &[usize], end: usize, through: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
        let mut before: Vec<Option<usize>> = vec![None; self.functions.len()];
        let mut queue: VecDeque<usize> = starts.iter().copied().collect();
        for &start in starts {
            before[start] = Some(start);
        }
        while let Some(at) = queue.pop_front() {
            if at == end {
                let mut way = vec![at];
                while let Some(from) = before[way[way.len() - 1]].filter(|&from| from != way[way.len() - 1]) {
                    way.push(from);
                }
                way.reverse();
                return Some(way);
            }
            if !through(at) {
                continue;
            }
            for &(_, to) in self.transitions.iter().filter(|&&(from, _)| from == at) {
                if before[to].is_none() {
                    before[to] = Some(at);
                    queue.push_back(to);
                }
            }
        }
        None
    }

    /// What is remembered of a descriptor: arguments that are asked for, and those of calls that R0 makes again.
    pub fn fields(&self) -> Vec<&Parameter> {
        let mut fields: Vec<&Parameter> = Vec::new();
        for function in self.functions.iter().filter(|f| f.state || f.creates.is_some()) {
            for parameter in &function.parameters {
                let kept = match parameter.kind {
                    Kind::Word => parameter.remembered || function.replayed() || function.creates.is_some(),
                    Kind::Bytes(_) => function.creates.is_some(),
                    _ => false,
                };
                if kept && !fields.iter().any(|field| field.name == parameter.name) {
                    fields.push(parameter);
                }
            }
        }
        fields
    }

    /// Files that are remembered, and given back when their descriptor is created again: at most one a descriptor.
    pub fn files(&self) -> Vec<&str> {
        let remembered = self.creators().filter_map(|(_, f)| f.file()).filter(|file| file.remembered);
        let mut files: Vec<&str> = remembered.map(|file| file.name.as_str()).collect();
        files.dedup();
        files
    }

    /// Closing a descriptor closes those below it.
    pub fn subtrees(&self) -> bool {
        self.properties.close_subtree && self.properties.parent != Parent::None
    }

    /// Fields that grow by what calls return.
    pub fn sums(&self) -> Vec<&str> {
        let mut sums = Vec::new();
        for parameter in self.functions.iter().flat_map(|f| &f.parameters) {
            if let Kind::OutAdd(field) = &parameter.kind {
                if !sums.contains(&field.as_str()) {
                    sums.push(field);
                }
            }
        }
        sums
    }

    /// Types of the interface that are not C's, each once: opaque ones.
    pub fn opaque(&self) -> Vec<&Type> {
        let mut opaque: Vec<&Type> = Vec::new();
        let all = self.functions.iter().flat_map(|f| f.parameters.iter().map(|p| &p.ty).chain([&f.returns]));
        for ty in all.chain(self.typedefs.iter().map(|(_, ty)| ty)).filter(|ty| ty.opaque) {
            if !opaque.contains(&ty) {
                opaque.push(ty);
            }
        }
        opaque
    }

    pub fn wakes(&self) -> bool {
        self.functions.iter().any(|f| f.wakeup)
    }

    pub fn has_resources(&self) -> bool {
        self.functions.iter().any(|f| f.resource)
    }

    /// Mechanisms that this interface needs.
    pub fn mechanisms(&self) -> Vec<Mechanism> {
        let needed = |mechanism: &Mechanism| match mechanism {
            Mechanism::R0 | Mechanism::T1 => true,
            Mechanism::T0 => self.functions.iter().any(|f| f.block),
            Mechanism::D0 => self.subtrees(),
            Mechanism::D1 => self.properties.parent != Parent::None,
            Mechanism::G0 | Mechanism::U0 => self.properties.global,
            Mechanism::G1 => self.has_resources(),
        };
        Mechanism::ALL.into_iter().filter(needed).collect()
    }
}
