//! The state machine: its functions exist, every state is reached, and it agrees with properties and parameters.

use crate::diagnostic::{similar, Diagnostic, Span};
use crate::model::{Function, Interface, Kind, Parent};
use crate::syntax::{File, Machine, Name};

pub fn machine(file: &File, functions: &mut [Function], diagnostics: &mut Vec<Diagnostic>) -> Vec<(usize, usize)> {
    let mut transitions = Vec::new();
    for statement in &file.machine {
        let places: Vec<usize> =
            statement.functions.iter().filter_map(|name| find(name, functions, diagnostics)).collect();
        for &at in &places {
            functions[at].state = true;
        }
        match (statement.word.text.as_str(), places.as_slice()) {
            ("sm_transition", &[from, to]) => transitions.push((from, to)),
            ("sm_terminal", &[at]) => functions[at].terminal = true,
            // What time wakes up blocks as well, but needs nobody to wake it.
            ("sm_block" | "temporal_sm", &[at]) => functions[at].block = true,
            ("sm_wakeup", &[at]) => functions[at].wakeup = true,
            ("sm_creation", &[at]) if functions[at].creates.is_none() => {
                // A descriptor without a name of its own: what is returned is the descriptor.
                functions[at].creates = Some("descriptor".to_string());
            }
            _ => {}
        }
    }
    transitions
}

fn find(name: &Name, functions: &[Function], diagnostics: &mut Vec<Diagnostic>) -> Option<usize> {
    let place = functions.iter().position(|function| function.name == name.text);
    if place.is_none() {
        let complaint = format!("`{}` is not declared", name.text);
        let complaint = Diagnostic::error(name.span.clone(), complaint, "no such function in this file");
        diagnostics.push(match similar(&name.text, functions.iter().map(|f| f.name.as_str())) {
            Some(meant) => complaint.hint(format!("did you mean `{meant}`?")),
            None => complaint.hint("declare it below the state machine, as in C"),
        });
    }
    place
}

fn statements<'a>(file: &'a File, word: &'a str) -> impl Iterator<Item = &'a Machine> {
    file.machine.iter().filter(move |statement| statement.word.text == word)
}

fn declared(file: &File, name: &str) -> Span {
    let function = file.functions.iter().find(|function| function.name.text == name);
    function.map_or(0..0, |function| function.name.span.clone())
}

/// Every state can be reached from a creation, and terminal ones are left no more.
pub fn reachable(file: &File, interface: &Interface, diagnostics: &mut Vec<Diagnostic>) {
    if statements(file, "sm_creation").next().is_none() {
        let place = file.machine.first().map_or(file.length..file.length, |first| first.word.span.clone());
        diagnostics.push(
            Diagnostic::error(place, "no function creates a descriptor", "the state machine has no beginning")
                .hint("name it: `sm_creation(f);`"),
        );
        return;
    }
    let mut reached: Vec<bool> = interface.functions.iter().map(|f| f.creates.is_some()).collect();
    for _ in 0..interface.functions.len() {
        for &(from, to) in &interface.transitions {
            reached[to] |= reached[from];
        }
    }
    for (at, function) in interface.states() {
        if !reached[at] {
            let place = file.machine.iter().flat_map(|statement| &statement.functions);
            let place = place.filter(|name| name.text == function.name).map(|name| name.span.clone()).next();
            let complaint = format!("the state `{}` is never reached", function.name);
            diagnostics.push(
                Diagnostic::error(place.unwrap_or(0..0), complaint, "no way leads here from a creation")
                    .hint(format!("add `sm_transition(f, {});`", function.name)),
            );
        }
    }
    for statement in statements(file, "sm_transition") {
        let from = &statement.functions[0];
        if interface.functions.iter().any(|f| f.terminal && f.name == from.text) {
            let complaint = format!("a transition leaves the terminal state `{}`", from.text);
            diagnostics.push(Diagnostic::error(from.span.clone(), complaint, "the descriptor is gone here"));
        }
    }
}

/// Properties, parameters and state machine say the same.
pub fn agrees(file: &File, interface: &Interface, diagnostics: &mut Vec<Diagnostic>) {
    let flag = |name: &str| {
        let flag = file.flags.iter().find(|flag| flag.name.text == name);
        flag.map_or_else(|| file.info.first().cloned().unwrap_or(0..0), |flag| flag.name.span.clone())
    };
    blocking(file, interface, flag("desc_block"), diagnostics);
    let parents = interface.functions.iter().find(|f| f.parent().is_some());
    match (interface.properties.parent, parents) {
        (Parent::None, Some(function)) => {
            let complaint = "a parent that nobody creates";
            diagnostics.push(
                Diagnostic::error(declared(file, &function.name), complaint, "has a `parent_desc`")
                    .and(flag("desc_dep_create_none"), "descriptors have no parents")
                    .hint("make `desc_dep_create_same` or `desc_dep_create_diff` true instead"),
            );
        }
        (Parent::Same | Parent::Different, None) => diagnostics.push(
            Diagnostic::error(flag("desc_dep_create_same"), "no function names a parent", "but descriptors have one")
                .hint("mark the parameter: `long desc_data(parent_desc(x))`, or make `desc_dep_create_none` true"),
        ),
        _ => {}
    }
    for (_, function) in interface.states() {
        let span = declared(file, &function.name);
        if function.creates.is_none() && function.id().is_none() {
            let complaint = format!("`{}` does not say which descriptor it is about", function.name);
            diagnostics.push(
                Diagnostic::warning(span.clone(), complaint, "not tracked")
                    .hint("mark the parameter: `long desc(x)`, or `desc_terminate(x)` where it is closed"),
            );
        }
        if function.parent().is_some() && function.creates.is_none() {
            let complaint = format!("`{}` names a parent, but creates nothing", function.name);
            diagnostics.push(
                Diagnostic::error(span, complaint, "returns no descriptor")
                    .hint("let it return `desc_data_retval(type, name)`"),
            );
        }
    }
    for function in &interface.functions {
        let remembered = function.parameters.iter().any(|p| p.kind == Kind::Buffer && p.remembered);
        if function.buffers() && (function.creates.is_some() || function.replayed() || remembered) {
            diagnostics.push(
                Diagnostic::error(
                    declared(file, &function.name),
                    "a buffer cannot be remembered",
                    "is made again after a failure, without what was in it",
                )
                .hint("create and bring to its state by other calls; what is in a buffer may become `resource_data`"),
            );
        }
        let kept = function.id().is_some() || function.creates.is_some();
        if function.adds() && (interface.properties.global || !kept) {
            diagnostics.push(
                Diagnostic::error(
                    declared(file, &function.name),
                    "nobody could keep this sum",
                    "has a `desc_data_add`",
                )
                .hint("it needs a descriptor that one client alone has: `desc(x)`, and `desc_global` false"),
            );
        }
    }
    let resource = interface.functions.iter().any(|f| f.resource);
    if interface.properties.resource_data != resource {
        let (complaint, hint) = match resource {
            true => ("data of the resource is kept, but it is said to have none", "make `resc_has_data` true"),
            false => (
                "the resource has data, but no function says which",
                "mark the parameter: `char *resource_data(id, bytes)`, or the result: `resc_data(int, left)`",
            ),
        };
        diagnostics.push(Diagnostic::warning(flag("resc_has_data"), complaint, "this says so").hint(hint));
    }
}

fn blocking(file: &File, interface: &Interface, flag: Span, diagnostics: &mut Vec<Diagnostic>) {
    let block = statements(file, "sm_block").next();
    let wakeup = statements(file, "sm_wakeup").next();
    let temporal = statements(file, "temporal_sm").next();
    match (block, wakeup) {
        (Some(block), None) => diagnostics.push(
            Diagnostic::error(block.word.span.clone(), "a function blocks and none wakes it up", "blocks for ever")
                .hint("name the one that does: `sm_wakeup(f);`; one that time wakes up is `temporal_sm(f);` instead"),
        ),
        (None, Some(wakeup)) => diagnostics.push(
            Diagnostic::error(wakeup.word.span.clone(), "a function wakes up and none blocks", "wakes nobody")
                .hint("name the one that does: `sm_block(f);`"),
        ),
        _ => {}
    }
    match (interface.properties.blocks, block.or(temporal)) {
        (true, None) => diagnostics.push(
            Diagnostic::warning(flag, "calls are said to block, but no function does", "this says so")
                .hint("name it: `sm_block(f);`; without, a thread blocked in a failing server is not known as such"),
        ),
        (false, Some(block)) => diagnostics.push(
            Diagnostic::warning(
                block.word.span.clone(),
                "this blocks, but calls are said not to",
                "taken as it stands",
            )
            .and(flag, "says so")
            .hint("make `desc_block` true"),
        ),
        _ => {}
    }
}
