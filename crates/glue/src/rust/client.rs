//! The client's side: a method for each function, which tracks what it does to descriptors.

use crate::mechanism::Mechanism;
use crate::model::{Function, Kind};

use super::{constant, mark, recovery, result, rust_name, signature, CLIENTS};
use crate::text::Text;
use crate::writer::Writer;

pub fn write(writer: &Writer, text: &mut Text) {
    let interface = writer.interface;
    text.line("/// What is remembered of a descriptor.");
    text.line("#[derive(Clone, Default)]");
    text.open("struct Data {");
    for field in interface.fields() {
        let ty = if matches!(field.kind, Kind::Bytes(_)) { "Vec<u8>" } else { &field.ty.rust };
        text.line(&format!("{}: {ty},", rust_name(&field.name)));
    }
    for file in interface.files() {
        text.line(&format!("{}: Option<std::sync::Arc<std::os::fd::OwnedFd>>,", rust_name(file)));
    }
    for sum in interface.sums() {
        text.line("/// Grows by what calls return.");
        text.line(&format!("{sum}: i64,"));
    }
    text.close("}");
    text.blank();
    text.line("/// The service, for one client of it. Clones are the same client.");
    text.line("#[derive(Clone)]");
    text.open("pub struct Client {");
    text.line("tracked: std::sync::Arc<Tracked>,");
    text.close("}");
    text.blank();
    text.open("struct Tracked {");
    text.line("channel: Channel,");
    text.line("descriptors: Descriptors<Data>,");
    text.close("}");
    text.blank();
    text.open("impl Client {");
    text.open("pub fn new(channel: Channel) -> Self {");
    text.line("let tracked = std::sync::Arc::new(Tracked { channel, descriptors: Descriptors::default() });");
    if writer.has(Mechanism::U0) {
        mark(writer, Mechanism::U0, text);
        text.line("let weak = std::sync::Arc::downgrade(&tracked);");
        text.open("tracked.channel.listen(move |id| {");
        text.line("let tracked = weak.upgrade()?;");
        text.line("let descriptor = tracked.descriptors.get(id);");
        text.line("let asked = Some(tracked.channel.epoch());");
        text.line("Some(descriptor.is_ok_and(|descriptor| tracked.current(&descriptor, asked).is_ok()))");
        text.close("});");
    }
    text.line("Self { tracked }");
    text.close("}");
    text.blank();
    text.line("pub fn channel(&self) -> &Channel {");
    text.line("    &self.tracked.channel");
    text.line("}");
    text.blank();
    text.line("/// How many descriptors are tracked.");
    text.open("pub fn count(&self) -> usize {");
    text.line("self.tracked.descriptors.count()");
    text.close("}");
    for function in &interface.functions {
        text.blank();
        method(writer, function, text);
    }
    text.close("}");
    text.blank();
    recovery::write(writer, text);
}

fn method(writer: &Writer, function: &Function, text: &mut Text) {
    text.open(&format!(
        "pub fn {}(&self{}) -> Result<{}, CallError> {{",
        function.name,
        signature(function, CLIENTS),
        result(function)
    ));
    text.line("let Tracked { channel, descriptors } = &*self.tracked;");
    if let (Some(id), None) = (function.id(), &function.creates) {
        about(writer, function, &rust_name(&id.name), text);
    } else if function.creates.is_some() {
        creation(writer, function, text);
    } else {
        text.line("let _ = descriptors;");
        text.line("let mut restorer = Restorer::default();");
        text.open("loop {");
        text.line("let epoch = channel.epoch();");
        request(writer, function, None, text);
        text.open("match channel.call(&request) {");
        text.line(&format!("Ok(reply) => return {},", returned(function)));
        text.line("Err(interrupted) => restorer.again(interrupted)?,");
        text.close("}");
        text.close("}");
    }
    text.close("}");
}

/// A call about a descriptor.
fn about(writer: &Writer, function: &Function, id: &str, text: &mut Text) {
    let global = writer.interface.properties.global;
    let open = format!("descriptors.open({id}.into_word())");
    match global {
        // Another client may have created it.
        true => text.line(&format!("let descriptor = {open}.ok();")),
        false => text.line(&format!("let descriptor = {open}?;")),
    }
    if function.adds() {
        text.line("let _one_at_a_time = descriptor.serial();");
    }
    text.line("let mut restorer = Restorer::default();");
    text.open("loop {");
    let current = match writer.has(Mechanism::T1) {
        true => {
            mark(writer, Mechanism::T1, text);
            match global && writer.interface.subtrees() {
                true => "self.tracked.current(DESCRIPTOR, None).inspect_err(|error| self.tracked.forget(DESCRIPTOR.id, error))?",
                false => "self.tracked.current(DESCRIPTOR, None)?",
            }
        }
        false => "(channel.epoch(), (DESCRIPTOR).server())",
    };
    match global {
        true => {
            text.open("let (epoch, server) = match &descriptor {");
            text.line(&format!("Some(descriptor) => {},", current.replace("DESCRIPTOR", "descriptor")));
            text.line(&format!("None => (channel.epoch(), {id}.into_word()),"));
            text.close("};");
        }
        false => text.line(&format!("let (epoch, server) = {};", current.replace("DESCRIPTOR", "&descriptor"))),
    }
    if function.terminal && writer.has(Mechanism::D0) {
        mark(writer, Mechanism::D0, text);
        match global {
            true => {
                text.open("if let Some(descriptor) = &descriptor {");
                text.line("self.tracked.subtree(descriptor)?;");
                text.close("}");
            }
            false => text.line("self.tracked.subtree(&descriptor)?;"),
        }
    }
    request(writer, function, Some(id), text);
    text.open("match channel.call(&request) {");
    text.open("Ok(reply) => {");
    if function.resource && writer.has(Mechanism::G1) {
        mark(writer, Mechanism::G1, text);
        text.line("// So the call has happened, even if the descriptor was recovered without it.");
    }
    let tracked = track(writer, function);
    match global {
        true => {
            text.line("// It has happened, whoever recovered the descriptor since then: what it did is on record.");
            text.open("if let Some(descriptor) = &descriptor {");
            text.line(&format!("{tracked};"));
            text.close("}");
        }
        false => text.open(&format!("if {tracked} {{")),
    }
    if function.terminal {
        let properties = &writer.interface.properties;
        text.line(&format!(
            "descriptors.close({id}.into_word(), {}, {});",
            properties.close_subtree, properties.keep_closed
        ));
    }
    text.line(&format!("return {};", returned(function)));
    if !global {
        text.close("}");
    }
    text.close("}");
    if global && writer.interface.subtrees() {
        text.open("Err(Interrupted::Failed(error)) => {");
        text.line(&format!("self.tracked.forget({id}.into_word(), &error);"));
        text.line("return Err(error);");
        text.close("}");
    }
    text.line("Err(interrupted) => restorer.again(interrupted)?,");
    text.close("}");
    text.close("}");
}

/// Takes note of what a call about a descriptor did to it.
fn track(writer: &Writer, function: &Function) -> String {
    let operation = constant(function);
    let fields: Vec<String> = writer.interface.fields().iter().map(|f| f.name.clone()).collect();
    let kept = function.words().filter(|p| p.kind == Kind::Word && fields.contains(&p.name));
    let mut notes: Vec<String> =
        kept.map(|p| rust_name(&p.name)).map(|name| format!("data.{name} = {name};")).collect();
    for (at, parameter) in function.out_words().enumerate() {
        if let Kind::OutAdd(field) = &parameter.kind {
            notes.push(format!("data.{field} += reply.words[{}] as i64;", at + 1));
        }
    }
    let note = match notes.is_empty() {
        true => "|_| ()".to_string(),
        false => format!("|data| {{ {} }}", notes.join(" ")),
    };
    let happened = function.resource && writer.has(Mechanism::G1);
    match function.adds() || happened {
        true => format!("descriptor.track_sum(&reply, operation::{operation}, {happened}, {note})"),
        false => format!("descriptor.track(&reply, operation::{operation}, {note})"),
    }
}

fn creation(writer: &Writer, function: &Function, text: &mut Text) {
    let interface = writer.interface;
    let parent = function.parent().map(|p| rust_name(&p.name));
    if let Some(parent) = &parent {
        text.line("// A parent that is not tracked is a root, or somebody else's.");
        text.line(&format!("let above = descriptors.open({parent}.into_word()).ok();"));
    }
    text.line("let mut restorer = Restorer::default();");
    text.open("loop {");
    match &parent {
        Some(parent) => {
            text.open("let (epoch, server) = match &above {");
            match writer.has(Mechanism::T1) {
                true => text.line("Some(above) => self.tracked.current(above, None)?,"),
                false => text.line("Some(above) => (channel.epoch(), above.server()),"),
            }
            text.line(&format!("None => (channel.epoch(), {parent}.into_word()),"));
            text.close("};");
        }
        None => text.line("let epoch = channel.epoch();"),
    }
    request(writer, function, parent.as_deref(), text);
    text.open("match channel.call(&request) {");
    text.open("Ok(reply) => {");
    let mut fields: Vec<String> = Vec::new();
    for field in interface.fields() {
        if let Some(own) = function.given().find(|p| p.name == field.name) {
            let name = rust_name(&own.name);
            match own.kind {
                Kind::Bytes(_) => fields.push(format!("{name}: {name}.to_vec()")),
                _ => fields.push(name),
            }
        }
    }
    for (at, parameter) in function.out_words().enumerate() {
        if let Kind::OutAdd(field) = &parameter.kind {
            fields.push(format!("{field}: reply.words[{}] as i64", at + 1));
        }
    }
    if let Some(file) = function.file().filter(|file| file.remembered) {
        fields.push(format!("{}: reply.file.clone()", rust_name(&file.name)));
    }
    let all = fields.len() == interface.fields().len() + interface.sums().len() + interface.files().len();
    let rest = if all { "" } else { ", ..Data::default()" };
    let data = format!("Data {{ {}{rest} }}", fields.join(", ")).replace("{ , ", "{ ");
    text.line(&format!("let data = {data};"));
    let above = match &parent {
        // Another client's, too: it is recovered before this one.
        Some(_) if interface.subtrees() => "server",
        Some(_) => "above.as_ref().map_or(0, |above| above.id)",
        None => "0",
    };
    let id = if interface.properties.global { "Some(reply.words[0])" } else { "None" };
    text.line(&format!(
        "let id = descriptors.insert({id}, reply.words[0], operation::{}, {above}, data, &reply);",
        constant(function)
    ));
    let id = format!("{}::from_word(id).ok_or(CallError::Unknown(id))", function.returns.rust);
    match function.outs().next() {
        None => text.line(&format!("return {id};")),
        Some(_) => text.line(&format!("return Ok(({id}?, {}));", beside(function).join(", "))),
    }
    text.close("}");
    text.line("Err(interrupted) => restorer.again(interrupted)?,");
    text.close("}");
    text.close("}");
}

/// `let request = …`; what names a descriptor is given as the component knows it.
pub(super) fn request(writer: &Writer, function: &Function, server: Option<&str>, text: &mut Text) {
    let mut list: Vec<String> = function
        .words()
        .map(|p| match (&p.kind, server) {
            (Kind::Id | Kind::Parent, Some(_)) => "server".to_string(),
            (Kind::Buffer, _) => format!("{}.number().into_word()", rust_name(&p.name)),
            _ => format!("{}.into_word()", rust_name(&p.name)),
        })
        .collect();
    if function.creates.is_some() {
        list.extend(writer.interface.sums().iter().map(|_| "0".to_string()));
    }
    let flags = match function.block && writer.has(Mechanism::T0) {
        true => {
            mark(writer, Mechanism::T0, text);
            "EAGER"
        }
        // Who waits is told of the death, not to call again but to fail.
        false if function.block && !writer.tracks => "EAGER",
        false => "0",
    };
    let bytes = function.bytes().map_or("&[]".to_string(), |p| rust_name(&p.name));
    text.open("let request = Request {");
    text.line(&format!("operation: operation::{},", constant(function)));
    text.line(&format!("flags: {flags},"));
    text.line("epoch,");
    text.line("wanted: 0,");
    text.line(&format!("words: &[{}],", list.join(", ")));
    text.line(&format!("bytes: {bytes},"));
    text.line("file: None,");
    text.close("};");
}

/// The result in a reply.
pub(super) fn returned(function: &Function) -> String {
    match function.outs().next() {
        None => "word(&reply.words, 0)".to_string(),
        Some(_) => format!("Ok((word(&reply.words, 0)?, {}))", beside(function).join(", ")),
    }
}

/// What came back beside the result.
fn beside(function: &Function) -> Vec<String> {
    let mut at = 0;
    let one = |p: &crate::model::Parameter| match p.kind {
        Kind::OutBytes(_) => "reply.bytes".to_string(),
        Kind::OutFile => "reply.file.ok_or(CallError::Service(74))?".to_string(),
        _ => {
            at += 1;
            format!("word(&reply.words, {at})?")
        }
    };
    function.outs().map(one).collect()
}
