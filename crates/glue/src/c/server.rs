//! The server's side: the functions that a service provides, and what it is by.

use crate::model::{Function, Interface, Kind};
use crate::text::Text;
use crate::writer::Writer;

use super::dispatch::{dispatch, moves};
use super::extern_c;
use super::names::{any, c_name, type_name, Names};

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
            "{{ .name = {:?}, .words = {}, .bytes = {}, .file = {}, .closes = {} }},",
            function.name,
            function.words().count() + sums,
            u32::from(function.bytes().is_some()),
            u32::from(function.creates.is_some() && !interface.files().is_empty()),
            function.closes().map_or(0, |word| word + 1)
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
    text.line(".born = NULL,");
    text.close("};");
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
