//! Recovery of a descriptor: what is done when the component that knew it has died.

use crate::mechanism::Mechanism;
use crate::model::{Kind, Parameter, Parent};
use crate::text::Text;
use crate::writer::Writer;

use super::mark;
use super::names::Names;

pub fn write(writer: &Writer, text: &mut Text) {
    // Without T1, D0 and U0 nobody would ask for it; then it is not there, for C complains of what is not used.
    let parents = writer.interface.properties.parent != Parent::None;
    let used = [Mechanism::T1, Mechanism::D0, Mechanism::U0].into_iter().any(|mechanism| writer.has(mechanism));
    if !used {
        return;
    }
    if parents && writer.has(Mechanism::D1) {
        text.line(&format!("{};", current()));
        text.blank();
    }
    walk(writer, parents, text);
    text.line("/* The component's epoch, and its id for the descriptor in it. `asked`: NULL, or the epoch in which it wants it. */");
    text.line(current());
    text.open("{");
    text.line("*epoch = glue_epoch(glue);");
    text.open("if (glue_valid(descriptor, *epoch, server)) {");
    text.line("return 0;");
    text.close("}");
    text.line("return glue_recover(glue, descriptor, asked, recover, epoch, server);");
    text.close("}");
    text.blank();
    if writer.has(Mechanism::D0) {
        subtree(writer, text);
    }
    if writer.has(Mechanism::U0) {
        mark(writer, Mechanism::U0, text);
        text.line("static int upcall(struct glue_client *glue, uint64_t id)");
        text.open("{");
        text.line("struct glue_descriptor *descriptor = glue_get(glue, id);");
        text.line("const uint32_t asked = glue_epoch(glue);");
        text.line("uint64_t server;");
        text.line("uint32_t epoch;");
        text.line(
            "int error = descriptor == NULL ? GLUE_UNKNOWN : current(glue, descriptor, &asked, &epoch, &server);",
        );
        text.blank();
        text.line("glue_put(descriptor);");
        text.line("return error == 0;");
        text.close("}");
        text.blank();
    }
}

fn current() -> &'static str {
    "static int current(struct glue_client *glue, const struct glue_descriptor *descriptor, const uint32_t *asked, \
     uint32_t *epoch, uint64_t *server)"
}

fn subtree(writer: &Writer, text: &mut Text) {
    const CHILD: &str = "static int below(struct glue_client *glue, const struct glue_descriptor *child)";
    mark(writer, Mechanism::D0, text);
    text.line(&format!("{CHILD};"));
    text.blank();
    text.line("static int subtree(struct glue_client *glue, const struct glue_descriptor *descriptor)");
    text.open("{");
    text.line("return glue_each_child(glue, descriptor, below);");
    text.close("}");
    text.blank();
    text.line(CHILD);
    text.open("{");
    text.line("uint64_t server;");
    text.line("uint32_t epoch;");
    text.line("int error = current(glue, child, NULL, &epoch, &server);");
    text.blank();
    if writer.interface.properties.global {
        text.line("/* Another client has closed it. */");
        text.open("if (error == GLUE_REFUSED(EBADF)) {");
        text.line("return 0;");
        text.close("}");
    }
    text.line("return error != 0 ? error : subtree(glue, child);");
    text.close("}");
    text.blank();
}

fn walk(writer: &Writer, parents: bool, text: &mut Text) {
    let interface = writer.interface;
    let names = Names(interface);
    let files = interface.functions.iter().any(|f| f.file().is_some());
    mark(writer, Mechanism::R0, text);
    text.line("static int recover(struct glue_client *glue, const struct glue_lost *lost, uint64_t *server)");
    text.open("{");
    text.line("uint64_t words[GLUE_WORDS] = { 0 };");
    text.line("struct glue_request request = {");
    for field in [
        ".operation = lost->creator",
        ".flags = GLUE_RECREATE",
        ".epoch = lost->epoch",
        ".wanted = lost->id",
        ".words = words",
        ".bytes = lost->bytes",
        ".length = lost->length",
        ".file = lost->file",
    ] {
        text.line(&format!("    {field},"));
    }
    text.line("};");
    text.line("struct glue_reply reply;");
    text.line("int error;");
    if parents {
        parent(writer, text);
    }
    text.blank();
    text.open("switch (lost->creator) {");
    for (_, function) in interface.creators() {
        let mut list: Vec<String> = function.words().map(|p| argument(writer, p)).collect();
        list.extend(interface.sums().iter().map(|sum| format!("lost->fields[{}]", names.field(sum))));
        case(&names.operation(function), "request", &list, text);
    }
    text.line("default:");
    text.line("    return GLUE_UNKNOWN;");
    text.close("}");
    text.line("error = glue_call(glue, &request, &reply);");
    text.open("if (error != 0) {");
    text.line("return error;");
    text.close("}");
    close_file(files, text);
    text.line("*server = reply.words[0];");
    if writer.has(Mechanism::R0) {
        let global = interface.properties.global;
        match global {
            true => {
                text.line("/* Several clients move a global descriptor: its state is on record with the component. */")
            }
            false => text.line("/* Then the calls that lead to its state; none is waited for. */"),
        }
        if interface.states().any(|(_, f)| f.replayed()) {
            steps(writer, if global { "(uint32_t)reply.words[7]" } else { "lost->state" }, files, text);
        }
        if global {
            text.line("/* Others may see it now. */");
            text.line("request.operation = GLUE_RECOVERED;");
            text.line("request.flags = 0;");
            text.line("request.count = 0;");
            text.line("request.length = 0;");
            text.line("request.file = -1;");
            text.line("return glue_call(glue, &request, &reply);");
        } else {
            text.line("return 0;");
        }
    } else {
        text.line("return 0;");
    }
    text.close("}");
    text.blank();
}

/// `parent`: the component's id for the descriptor's parent.
fn parent(writer: &Writer, text: &mut Text) {
    // Another client's: it is recovered by that one.
    let others = if writer.interface.subtrees() { "lost->parent" } else { "0" };
    text.line(&format!("uint64_t parent = {others};"));
    text.line("struct glue_descriptor *above = glue_get(glue, lost->parent);");
    text.blank();
    if writer.has(Mechanism::D1) {
        mark(writer, Mechanism::D1, text);
        text.open("if (above != NULL) {");
        text.line("uint32_t epoch;");
        text.blank();
        text.line("error = current(glue, above, lost->asked, &epoch, &parent);");
        text.line("glue_put(above);");
        text.open("if (error != 0) {");
        text.line("return error;");
        text.close("}");
        text.close("}");
    } else {
        text.open("if (above != NULL) {");
        text.line("parent = glue_server(above);");
        text.line("glue_put(above);");
        text.close("}");
    }
}

fn case(operation: &str, request: &str, list: &[String], text: &mut Text) {
    text.line(&format!("case {operation}:"));
    text.indent();
    for (at, word) in list.iter().enumerate() {
        text.line(&format!("words[{at}] = {word};"));
    }
    text.line(&format!("{request}.count = {};", list.len()));
    text.line("break;");
    text.outdent();
}

/// The calls that lead to the descriptor's state, made again.
fn steps(writer: &Writer, state: &str, files: bool, text: &mut Text) {
    let interface = writer.interface;
    let names = Names(interface);
    text.line("const uint32_t *steps = NULL;");
    text.line("size_t count = 0;");
    text.blank();
    text.open(&format!("switch ({state}) {{"));
    for (at, function) in interface.states() {
        let walk = interface.walk(at).into_iter().map(|step| &interface.functions[step]);
        let steps: Vec<String> = walk.filter(|step| step.replayed()).map(|step| names.operation(step)).collect();
        if !steps.is_empty() {
            text.open(&format!("case {}: {{", names.operation(function)));
            text.line(&format!("static const uint32_t walk[] = {{ {} }};", steps.join(", ")));
            text.line("steps = walk;");
            text.line(&format!("count = {};", steps.len()));
            text.line("break;");
            text.close("}");
        }
    }
    text.line("default:");
    text.line("    break;");
    text.close("}");
    text.open("for (size_t at = 0; at < count; at++) {");
    text.open("struct glue_request step = {");
    text.line(".operation = steps[at],");
    text.line(".flags = GLUE_TRY | GLUE_RECREATE,");
    text.line(".epoch = lost->epoch,");
    text.line(".wanted = lost->id,");
    text.line(".words = words,");
    text.line(".file = -1,");
    text.close("};");
    text.blank();
    text.open("switch (steps[at]) {");
    for (_, function) in interface.states().filter(|(_, f)| f.replayed()) {
        let list: Vec<String> = function.words().map(|p| argument(writer, p)).collect();
        case(&names.operation(function), "step", &list, text);
    }
    text.line("default:");
    text.line("    continue;");
    text.close("}");
    text.line("error = glue_call(glue, &step, &reply);");
    text.line("/* What the service says of it does not matter. */");
    text.open("if (error < 0) {");
    text.line("return error;");
    text.close("}");
    close_file(files, text);
    text.close("}");
}

/// Files that come back from calls made again are had already.
fn close_file(files: bool, text: &mut Text) {
    if files {
        text.open("if (reply.file >= 0) {");
        text.line("close(reply.file);");
        text.close("}");
    }
}

/// An argument out of what is remembered.
fn argument(writer: &Writer, parameter: &Parameter) -> String {
    let names = Names(writer.interface);
    match parameter.kind {
        Kind::Id => "*server".to_string(),
        Kind::Parent => "parent".to_string(),
        _ if names.fields().contains(&parameter.name) => format!("lost->fields[{}]", names.field(&parameter.name)),
        _ => "0".to_string(),
    }
}
