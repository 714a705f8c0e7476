//! The server's side: the functions that a service provides, and the stub that serves calls with them.

use crate::mechanism::Mechanism;
use crate::model::{Function, Interface, Kind, Parameter};
use crate::text::Text;
use crate::writer::Writer;

use super::names::{any, c_name, type_name, Names};
use super::{extern_c, mark};

pub fn header(writer: &Writer, text: &mut Text) {
    let (interface, service) = (writer.interface, &writer.interface.service);
    text.line(&format!("#include \"{service}_types.h\""));
    text.blank();
    extern_c(text, |text| {
        text.line("/* The service with its stub, for glue_run. */");
        text.line(&format!("extern const struct glue_service {service}_service;"));
        text.blank();
        text.line("/* What the service provides. Its state is the program's memory as it was before glue_run. It runs one call at a time.");
        text.line(" * It returns 0, and what comes back is where arguments point to, which is never NULL; or an errno: then it is as it");
        text.line(" * was before the call. What arguments point to is there until the function returns. */");
        for function in &interface.functions {
            for line in remarks(interface, function) {
                text.line(&format!("/* {line} */"));
            }
            text.line(&format!("{};", declaration(interface, function)));
        }
        if interface.subtrees() {
            text.line("/* What is closed with the descriptor: glue_release for each client that has something of it, and what that returns if");
            text.line(" * it is not 0. */");
            text.line(&format!("{};", held(interface)));
        }
    });
}

fn remarks(interface: &Interface, function: &Function) -> Vec<String> {
    let mut remarks = Vec::new();
    if function.creates.is_some() {
        let mut extra = vec!["Creates a descriptor, also again after a failure".to_string()];
        if !interface.sums().is_empty() {
            extra.push("with what was remembered, else 0".to_string());
        }
        if !interface.files().is_empty() {
            extra.push("with the file, which stays the runtime's, else -1".to_string());
        }
        if interface.properties.global {
            extra.push("under the id `wanted`".to_string());
        }
        remarks.push(format!("{}.", extra.join(", ")));
    }
    if function.block {
        remarks.push("Has the thread wait by glue_wait or glue_wait_until; it is then called again.".to_string());
    }
    if function.wakeup {
        remarks.push("Threads that wait for the descriptor are called again; for others, glue_wake.".to_string());
    }
    if let Some(file) = function.file() {
        remarks.push(format!("The file in `{}` becomes the runtime's.", c_name(&file.name)));
    }
    remarks
}

fn declaration(interface: &Interface, function: &Function) -> String {
    let names = Names(interface);
    let mut parameters = vec!["struct glue_call *call".to_string()];
    parameters.extend(names.parameters(function));
    if function.creates.is_some() {
        parameters.extend(interface.sums().iter().map(|sum| format!("int64_t remembered_{sum}")));
        parameters.extend(interface.files().iter().map(|file| format!("int remembered_{file}")));
        if interface.properties.global {
            parameters.push("uint64_t wanted".to_string());
        }
    }
    parameters.push(format!("{} *{}", type_name(&function.returns), names.result(function)));
    format!("int serve_{}({})", function.name, parameters.join(", "))
}

fn held(interface: &Interface) -> String {
    format!("int serve_{}_held(struct glue_call *call, uint64_t descriptor)", interface.service)
}

pub fn write(writer: &Writer, text: &mut Text) {
    let (interface, service) = (writer.interface, &writer.interface.service);
    let names = Names(interface);
    text.line(&format!("#include \"{service}_server.h\""));
    text.blank();
    text.line("#include <errno.h>");
    if interface.functions.iter().any(|f| f.outs().any(|p| matches!(p.kind, Kind::OutBytes(_)))) {
        text.line("#include <stdlib.h>");
    }
    text.blank();
    if interface.functions.iter().any(moves) {
        follows(interface, text);
    }
    for function in &interface.functions {
        dispatch(writer, function, text);
        text.blank();
    }
    text.line("static int dispatch(struct glue_call *call)");
    text.open("{");
    text.open("switch (glue_operation_of(call)) {");
    for function in &interface.functions {
        text.line(&format!("case {}:", names.operation(function)));
        text.line(&format!("    return dispatch_{}(call);", function.name));
    }
    text.line("default:");
    text.line("    return glue_refuse(call, EINVAL);");
    text.close("}");
    text.close("}");
    text.blank();
    text.open(&format!("static const struct glue_operation operations[{}] = {{", interface.functions.len()));
    for function in &interface.functions {
        let sums = if function.creates.is_some() { interface.sums().len() } else { 0 };
        text.line(&format!(
            "{{ .name = {:?}, .words = {}, .bytes = {}, .file = {} }},",
            function.name,
            function.words().count() + sums,
            u32::from(function.bytes().is_some()),
            u32::from(function.creates.is_some() && !interface.files().is_empty())
        ));
    }
    text.close("};");
    text.blank();
    text.open(&format!("const struct glue_service {service}_service = {{"));
    text.line(".operations = operations,");
    text.line(&format!(".count = {},", interface.functions.len()));
    text.line(&format!(".global = {},", u32::from(interface.properties.global)));
    text.line(".dispatch = dispatch,");
    text.line(".reached = NULL,");
    text.close("};");
}

/// Whether a call of it may move a descriptor to its state.
fn moves(function: &Function) -> bool {
    function.creates.is_none() && function.id().is_some() && !function.terminal && function.state
}

fn follows(interface: &Interface, text: &mut Text) {
    let names = Names(interface);
    text.line("/* Whether `operation`, done to a descriptor in `state`, changes its state. */");
    text.line("static int follows(uint32_t state, uint32_t operation)");
    text.open("{");
    text.open("switch (state) {");
    for (from, a) in interface.states() {
        let next = interface.states().filter(|&(to, _)| interface.follows(from, to));
        if let Some(next) = any(next.map(|(_, b)| format!("operation == {}", names.operation(b)))) {
            text.open(&format!("case {}:", names.operation(a)));
            text.line(&format!("return {next};"));
            text.outdent();
        }
    }
    text.line("default:");
    text.line("    return 0;");
    text.close("}");
    text.close("}");
    text.blank();
}

/// Returns at once what stops the call.
fn unless_stopped(text: &mut Text, what: &str) {
    text.line(&format!("stop = {what};"));
    text.open("if (stop != 0) {");
    text.line("return stop;");
    text.close("}");
}

fn dispatch(writer: &Writer, function: &Function, text: &mut Text) {
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
            Kind::Word | Kind::Id | Kind::Parent => {
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
