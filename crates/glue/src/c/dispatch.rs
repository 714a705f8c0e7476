//! A call at the server: what is checked, the service's function, and what it did to descriptors.

use crate::mechanism::Mechanism;
use crate::model::{Function, Kind, Parameter};
use crate::text::Text;
use crate::writer::Writer;

use super::mark;
use super::names::{any, c_name, type_name, Names};

/// Whether a call of it may move a descriptor to its state.
pub fn moves(function: &Function) -> bool {
    function.creates.is_none() && function.id().is_some() && !function.terminal && function.state
}

/// Returns at once what stops the call.
fn unless_stopped(text: &mut Text, what: &str) {
    text.line(&format!("stop = {what};"));
    text.open("if (stop != 0) {");
    text.line("return stop;");
    text.close("}");
}

pub fn dispatch(writer: &Writer, function: &Function, text: &mut Text) {
    let interface = writer.interface;
    let names = Names(interface);
    let place = |wanted: &Parameter| function.words().position(|p| p.name == wanted.name).unwrap_or(0);
    let id = function.id().map(|id| format!("words[{}]", place(id)));
    let result = names.result(function);
    let first = function.words().count();
    let uses_words = first > 0 || function.creates.is_some() && !interface.sums().is_empty();
    text.line(&format!("static int dispatch_{}(struct glue_call *call)", function.name));
    text.open("{");
    if uses_words {
        text.line("const uint64_t *words = glue_words(call);");
    }
    text.line(&format!("{} {result} = 0;", type_name(&function.returns)));
    for out in function.outs() {
        let name = c_name(&out.name);
        match out.kind {
            Kind::OutBytes(_) => {
                text.line(&format!("_Alignas(16) unsigned char {name}[GLUE_BYTES];"));
                text.line(&format!("size_t {name}_length = 0;"));
            }
            Kind::OutFile => text.line(&format!("int {name} = -1;")),
            _ => text.line(&format!("{} {name} = 0;", type_name(&out.ty))),
        }
    }
    let bytes = function.bytes().map(|p| c_name(&p.name));
    if let Some(bytes) = &bytes {
        text.line(&format!("size_t {bytes}_length;"));
        text.line(&format!("const void *{bytes} = glue_bytes(call, &{bytes}_length);"));
    }
    if function.creates.is_some() && interface.properties.global {
        text.line("uint64_t wanted;");
    }
    if moves(function) {
        text.line("uint32_t before;");
    }
    text.line("int stop;");
    text.blank();
    let mut mad: Vec<String> = Vec::new();
    for (at, parameter) in function.words().enumerate() {
        mad.extend(names.fits(&parameter.ty, &format!("words[{at}]")));
    }
    for parameter in function.parameters.iter().filter(|p| matches!(p.kind, Kind::Length(_))) {
        mad.extend(bytes.as_ref().and_then(|bytes| names.fits(&parameter.ty, &format!("{bytes}_length"))));
    }
    if let Some(mad) = any(mad.into_iter().map(|fits| format!("!{fits}"))) {
        text.open(&format!("if ({mad}) {{"));
        text.line("return glue_refuse(call, EINVAL);");
        text.close("}");
    }
    rights(writer, function, id.as_deref(), text);
    if interface.has_resources() && writer.has(Mechanism::G1) {
        mark(writer, Mechanism::G1, text);
        text.line("glue_keep(call);");
    }
    let mut arguments = vec!["call".to_string()];
    let mut at = 0;
    for parameter in &function.parameters {
        let (name, ty) = (c_name(&parameter.name), type_name(&parameter.ty));
        let limits = function
            .outs()
            .any(|out| matches!(out.kind, Kind::OutBytes(most) if function.parameters[most].name == parameter.name));
        match parameter.kind {
            Kind::Word | Kind::Buffer | Kind::Id | Kind::Parent => {
                arguments.push(match limits {
                    true => format!("({ty})GLUE_ROOM(words[{at}])"),
                    false => format!("({ty})words[{at}]"),
                });
                at += 1;
            }
            Kind::Length(_) => arguments.extend(bytes.as_ref().map(|bytes| format!("({ty}){bytes}_length"))),
            Kind::Bytes(_) => arguments.push(name),
            Kind::OutBytes(_) => arguments.push(format!("(void *){name}, &{name}_length")),
            Kind::Out | Kind::OutAdd(_) | Kind::OutFile => arguments.push(format!("&{name}")),
        }
    }
    if function.creates.is_some() {
        arguments.extend((0..interface.sums().len()).map(|sum| format!("(int64_t)words[{}]", first + sum)));
        arguments.extend(interface.files().iter().map(|_| "glue_file(call)".to_string()));
        if interface.properties.global {
            arguments.push("wanted".to_string());
        }
    }
    arguments.push(format!("&{result}"));
    unless_stopped(text, &format!("serve_{}({})", function.name, arguments.join(", ")));
    answers(function, &result, text);
    changes(writer, function, id.as_deref(), &result, text);
    text.line("return 0;");
    text.close("}");
}

/// What the call is about is the client's to use.
fn rights(writer: &Writer, function: &Function, id: Option<&str>, text: &mut Text) {
    let interface = writer.interface;
    let place = |wanted: &Parameter| function.words().position(|p| p.name == wanted.name).unwrap_or(0);
    if let Some(id) = id {
        if interface.properties.global && !writer.has(Mechanism::G0) {
            unless_stopped(text, &format!("glue_known(call, {id})"));
        } else {
            if interface.properties.global {
                mark(writer, Mechanism::G0, text);
            }
            unless_stopped(text, &format!("glue_capability(call, {id})"));
        }
    }
    if let Some(parent) = function.parent() {
        let parent = format!("words[{}]", place(parent));
        unless_stopped(text, &format!("{parent} == 0 ? 0 : glue_capability(call, {parent})"));
    }
    if function.creates.is_some() && interface.properties.global {
        unless_stopped(text, "glue_global_id(call, &wanted)");
    }
    if let (Some(id), true, true) = (id, function.terminal, interface.subtrees()) {
        if writer.has(Mechanism::D0) {
            mark(writer, Mechanism::D0, text);
            unless_stopped(text, &format!("glue_subtree(call, {id})"));
        }
        unless_stopped(text, &format!("serve_{}_held(call, {id})", interface.service));
    }
}

fn answers(function: &Function, result: &str, text: &mut Text) {
    text.line(&format!("glue_answer(call, 0, GLUE_WORD({result}));"));
    for (at, out) in function.out_words().enumerate() {
        text.line(&format!("glue_answer(call, {}, GLUE_WORD({}));", at + 1, c_name(&out.name)));
    }
    for out in function.outs() {
        let name = c_name(&out.name);
        match out.kind {
            Kind::OutBytes(most) => {
                let most = function.words().position(|p| p.name == function.parameters[most].name).unwrap_or(0);
                text.open(&format!("if ({name}_length > (size_t)GLUE_ROOM(words[{most}])) {{"));
                text.line("/* It wrote where it must not: whatever it is now, it is no service. */");
                text.line("abort();");
                text.close("}");
                text.line(&format!("glue_answer_bytes(call, {name}, {name}_length);"));
            }
            Kind::OutFile => text.line(&format!("glue_answer_file(call, {name});")),
            _ => {}
        }
    }
}

/// What the call did to descriptors, and who is woken.
fn changes(writer: &Writer, function: &Function, id: Option<&str>, result: &str, text: &mut Text) {
    let interface = writer.interface;
    let operation = Names(interface).operation(function);
    if function.creates.is_some() {
        let parent = match (function.parent(), interface.subtrees()) {
            (Some(parent), true) => {
                let at = function.words().position(|p| p.name == parent.name).unwrap_or(0);
                format!("words[{at}]")
            }
            _ => "0".to_string(),
        };
        text.line(&format!("glue_created(call, GLUE_WORD({result}), {operation}, {parent});"));
        if interface.properties.global {
            text.open("if (glue_recreates(call)) {");
            text.line(&format!("glue_answer(call, 7, glue_recorded(call, GLUE_WORD({result})));"));
            text.close("}");
        }
    } else if let Some(id) = id {
        if function.terminal {
            text.line(&format!("glue_closed(call, {id}, {});", u32::from(interface.subtrees())));
        } else if moves(function) {
            text.open(&format!("if (glue_state(call, {id}, &before) && follows(before, {operation})) {{"));
            text.line(&format!("glue_moved(call, {id});"));
            text.close("}");
        }
        if function.wakeup || function.terminal {
            text.line(&format!("glue_wake(call, {id});"));
        }
    }
}
