//! What both sides include: types that the interface names, and numbers of its operations.

use crate::text::Text;
use crate::writer::Writer;

use super::names::{type_name, Names};

pub fn write(writer: &Writer, text: &mut Text) {
    let names = Names(writer.interface);
    text.line("#include <outlast_glue.h>");
    text.blank();
    for ty in writer.interface.opaque().into_iter().filter(|ty| ty.c != "void") {
        let name = type_name(ty);
        text.line("/* Opaque: the interface does not say what it is. Who has a definition of it defines this, too. */");
        text.line(&format!("#ifndef GLUE_HAS_{name}"));
        text.line(&format!("typedef int64_t {name};"));
        text.line("#endif");
    }
    for (name, ty) in &writer.interface.typedefs {
        text.line(&format!("typedef {} {name};", type_name(ty)));
    }
    text.blank();
    text.line("/* Numbers of the operations; the one that brought a descriptor to its state is the state's. */");
    text.open(&format!("enum {}_operation {{", writer.interface.service));
    for (at, function) in writer.interface.functions.iter().enumerate() {
        text.line(&format!("{} = {at},", names.operation(function)));
    }
    text.close("};");
}
