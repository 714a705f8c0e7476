//! A function of the client's: the call, made again for as long as the component dies, and what is noted of it.

use crate::mechanism::Mechanism;
use crate::model::{Function, Kind};
use crate::text::Text;
use crate::writer::Writer;

use super::mark;
use super::names::{any, c_name, type_name, Names};

pub fn locals(text: &mut Text) {
    text.line("struct glue_client *glue = client->glue;");
    text.line("struct glue_restorer restorer = { 0 };");
    text.line("struct glue_reply reply;");
    text.line("uint32_t epoch;");
    text.line("int error;");
}

/// A call about nothing that is tracked.
pub fn plain(writer: &Writer, function: &Function, text: &mut Text) {
    locals(text);
    text.blank();
    text.open("for (;;) {");
    text.line("epoch = glue_epoch(glue);");
    call(writer, function, None, text, |text| returned(writer, function, text));
    text.close("}");
    text.line("return error;");
}

/// The call, what is done with its reply, and that it is made again if the component dies.
pub fn call(writer: &Writer, function: &Function, server: Option<&str>, text: &mut Text, done: impl FnOnce(&mut Text)) {
    request(writer, function, server, text);
    text.line("error = glue_call(glue, &request, &reply);");
    text.open("if (error == 0) {");
    done(text);
    text.line("break;");
    text.close("}");
    text.line("error = glue_again(&restorer, error);");
    text.open("if (error != 0) {");
    text.line("break;");
    text.close("}");
}

/// A call about a descriptor.
pub fn about(writer: &Writer, function: &Function, id: &str, text: &mut Text) {
    let properties = &writer.interface.properties;
    let global = properties.global;
    locals(text);
    text.line(&format!("struct glue_descriptor *descriptor = glue_open(glue, GLUE_WORD({id}));"));
    if function.adds() {
        text.line("struct glue_turn *turn;");
    }
    text.line("uint64_t server;");
    text.blank();
    if global {
        text.line("/* NULL: another client may have created it. */");
    } else {
        text.open("if (descriptor == NULL) {");
        text.line("return GLUE_UNKNOWN;");
        text.close("}");
    }
    if function.adds() {
        text.line("/* One at a time. */");
        text.line("turn = glue_serial(descriptor);");
    }
    text.open("for (;;) {");
    valid(writer, "descriptor", id, global, text);
    if function.terminal && writer.has(Mechanism::D0) {
        mark(writer, Mechanism::D0, text);
        let known = if global { "descriptor == NULL ? 0 : " } else { "" };
        text.line(&format!("error = {known}subtree(glue, descriptor);"));
        text.open("if (error != 0) {");
        text.line("break;");
        text.close("}");
    }
    call(writer, function, Some(id), text, |text| {
        track(writer, function, text);
        if function.terminal {
            let (subtree, keep) = (u32::from(properties.close_subtree), u32::from(properties.keep_closed));
            text.line(&format!("glue_forget(glue, GLUE_WORD({id}), {subtree}, {keep});"));
        }
        returned(writer, function, text);
    });
    text.close("}");
    if global && writer.interface.subtrees() {
        text.line("/* Another client has closed it, or what it was below: nothing of it is left to be remembered. */");
        text.open("if (error == GLUE_REFUSED(EBADF)) {");
        text.line(&format!("glue_forget(glue, GLUE_WORD({id}), 1, 0);"));
        text.close("}");
    }
    if function.adds() {
        text.line("glue_serial_end(turn);");
    }
    text.line("glue_put(descriptor);");
    text.line("return error;");
}

/// `epoch` and `server`: as the component knows the descriptor now. `perhaps`: it may be none of this client's.
pub fn valid(writer: &Writer, descriptor: &str, id: &str, perhaps: bool, text: &mut Text) {
    if perhaps {
        text.open(&format!("if ({descriptor} == NULL) {{"));
        text.line("epoch = glue_epoch(glue);");
        text.line(&format!("server = GLUE_WORD({id});"));
        text.close("} else {");
        text.indent();
    }
    match writer.has(Mechanism::T1) {
        true => {
            mark(writer, Mechanism::T1, text);
            text.line(&format!("error = current(glue, {descriptor}, NULL, &epoch, &server);"));
            text.open("if (error != 0) {");
            text.line("break;");
            text.close("}");
        }
        false => {
            text.line("epoch = glue_epoch(glue);");
            text.line(&format!("server = glue_server({descriptor});"));
        }
    }
    if perhaps {
        text.close("}");
    }
}

/// Takes note of what a call about a descriptor did to it.
fn track(writer: &Writer, function: &Function, text: &mut Text) {
    let names = Names(writer.interface);
    let fields = names.fields();
    let kept = function.words().filter(|p| p.kind == Kind::Word && fields.contains(&p.name));
    let mut notes: Vec<String> =
        kept.map(|p| format!("{{ {}, 0, GLUE_WORD({}) }}", names.field(&p.name), c_name(&p.name))).collect();
    for (at, parameter) in function.out_words().enumerate() {
        if let Kind::OutAdd(field) = &parameter.kind {
            notes.push(format!("{{ {}, 1, reply.words[{}] }}", names.field(field), at + 1));
        }
    }
    let list = match notes.is_empty() {
        true => "NULL, 0".to_string(),
        false => {
            text.line(&format!("const struct glue_note notes[] = {{ {} }};", notes.join(", ")));
            format!("notes, {}", notes.len())
        }
    };
    let happened = function.resource && writer.has(Mechanism::G1);
    if happened {
        mark(writer, Mechanism::G1, text);
        text.line("/* So the call has happened, even if the descriptor was recovered without it. */");
    }
    let operation = names.operation(function);
    let tracked = match function.adds() || happened {
        true => format!("glue_track_sum(descriptor, &reply, {operation}, {}, {list})", u32::from(happened)),
        false => format!("glue_track(descriptor, &reply, {operation}, {list})"),
    };
    if writer.interface.properties.global {
        text.line("/* It has happened, whoever recovered the descriptor since then: what it did is on record. */");
        text.open("if (descriptor != NULL) {");
        text.line(&format!("{tracked};"));
        text.close("}");
        return;
    }
    text.open(&format!("if (!{tracked}) {{"));
    close_file(function, text);
    text.line("continue;");
    text.close("}");
}

/// A file of a reply that does not count.
fn close_file(function: &Function, text: &mut Text) {
    if function.file().is_some() {
        text.open("if (reply.file >= 0) {");
        text.line("close(reply.file);");
        text.close("}");
    }
}

/// Bytes that go with a call, and their length.
pub fn bytes(function: &Function) -> (String, String) {
    match function.bytes().map(|p| (&p.name, &p.kind)) {
        Some((name, Kind::Bytes(length))) => {
            (c_name(name), format!("(size_t)GLUE_WORD({})", c_name(&function.parameters[*length].name)))
        }
        _ => ("NULL".to_string(), "0".to_string()),
    }
}

/// `const struct glue_request request = …`; what names a descriptor is given as the component knows it.
fn request(writer: &Writer, function: &Function, server: Option<&str>, text: &mut Text) {
    let mut list: Vec<String> = function
        .words()
        .map(|p| match (&p.kind, server) {
            (Kind::Id | Kind::Parent, Some(_)) => "server".to_string(),
            _ => format!("GLUE_WORD({})", c_name(&p.name)),
        })
        .collect();
    if function.creates.is_some() {
        list.extend(writer.interface.sums().iter().map(|_| "0".to_string()));
    }
    let pointer = words(text, &list);
    let eager = function.block && writer.has(Mechanism::T0);
    if eager {
        mark(writer, Mechanism::T0, text);
    }
    let (bytes, length) = bytes(function);
    text.open("const struct glue_request request = {");
    text.line(&format!(".operation = {},", Names(writer.interface).operation(function)));
    text.line(&format!(".flags = {},", if eager { "GLUE_EAGER" } else { "0" }));
    text.line(".epoch = epoch,");
    text.line(&format!(".words = {pointer},"));
    text.line(&format!(".count = {},", list.len()));
    text.line(&format!(".bytes = {bytes},"));
    text.line(&format!(".length = {length},"));
    text.line(".file = -1,");
    for out in function.outs() {
        if let Kind::OutBytes(most) = out.kind {
            text.line(&format!(".answer = {},", c_name(&out.name)));
            text.line(&format!(".room = GLUE_WORD({}),", c_name(&function.parameters[most].name)));
        }
    }
    text.close("};");
}

/// What comes back, where it fits its types; a server that sends what cannot be has gone mad.
pub fn returned(writer: &Writer, function: &Function, text: &mut Text) {
    let names = Names(writer.interface);
    let mut mad: Vec<String> = names.fits(&function.returns, "reply.words[0]").into_iter().collect();
    for (at, out) in function.out_words().enumerate() {
        mad.extend(names.fits(&out.ty, &format!("reply.words[{}]", at + 1)));
    }
    let mut mad: Vec<String> = mad.into_iter().map(|fits| format!("!{fits}")).collect();
    let words = !mad.is_empty();
    if function.file().is_some() {
        mad.push("reply.file < 0".to_string());
    }
    if let Some(mad) = any(mad) {
        text.open(&format!("if ({mad}) {{"));
        if words {
            close_file(function, text);
        }
        text.line("error = EBADMSG;");
        text.line("break;");
        text.close("}");
    }
    let mut give = |name: &str, value: String| {
        text.open(&format!("if ({name} != NULL) {{"));
        text.line(&format!("*{name} = {value};"));
        text.close("}");
    };
    give(&names.result(function), format!("({})reply.words[0]", type_name(&function.returns)));
    for (at, out) in function.out_words().enumerate() {
        give(&c_name(&out.name), format!("({})reply.words[{}]", type_name(&out.ty), at + 1));
    }
    for out in function.outs().filter(|out| matches!(out.kind, Kind::OutBytes(_))) {
        give(&format!("{}_length", c_name(&out.name)), "reply.length".to_string());
    }
    if let Some(file) = function.file() {
        let name = c_name(&file.name);
        text.open(&format!("if ({name} != NULL) {{"));
        text.line(&format!("*{name} = reply.file;"));
        text.close("} else {");
        text.indent();
        text.line("close(reply.file);");
        text.close("}");
    }
}

/// A list of words, or none where C has no empty lists.
fn words(text: &mut Text, list: &[String]) -> &'static str {
    if list.is_empty() {
        return "NULL";
    }
    text.line(&format!("const uint64_t words[] = {{ {} }};", list.join(", ")));
    "words"
}
