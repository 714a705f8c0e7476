//! What authors of plug-ins need and compilers do not bring: the interface as text, bindings of it for C, and a component made of the
//! core module that a compiler has made.

use std::path::{Path, PathBuf};
use wit_bindgen_core::Files;
use wit_component::ComponentEncoder;
use wit_parser::{Resolve, WorldId};

/// The package that a plug-in is made for.
pub const WIT: &str = concat!(
    include_str!("../../../../crates/plugins/wit/module.wit"),
    "\n",
    include_str!("../../../../crates/plugins/wit/looks.wit")
);

/// The world in it.
const WORLD: &str = "module";

/// What can go wrong.
#[derive(Debug, thiserror::Error, displaydoc::Display)]
pub enum Error {
    /// {0}: {1}
    File(PathBuf, std::io::Error),
    /// no component can be made of it: {0}
    Component(String),
    /// the interface: {0}
    Interface(String),
}

/// Makes a component of a core module in which bindings of the interface are.
///
/// # Errors
/// It is none, or its imports and exports are not those of the interface.
pub fn component(core: &[u8]) -> Result<Vec<u8>, Error> {
    let encoder = ComponentEncoder::default().validate(true).module(core);
    encoder.and_then(|mut encoder| encoder.encode()).map_err(|e| Error::Component(format!("{e:#}")))
}

/// Writes the bindings for C into a folder: a header, a source file, and an object that says what the module is for.
///
/// # Errors
/// They cannot be written.
pub fn bindings_for_c(folder: &Path) -> Result<(), Error> {
    let (resolve, world) = interface()?;
    let mut files = Files::default();
    let generated = wit_bindgen_c::Opts::default().build().generate(&resolve, world, &mut files);
    generated.map_err(|e| Error::Interface(format!("{e:#}")))?;
    std::fs::create_dir_all(folder).map_err(|e| Error::File(folder.into(), e))?;
    for (name, contents) in files.iter() {
        let path = folder.join(name);
        std::fs::write(&path, contents).map_err(|e| Error::File(path, e))?;
    }
    Ok(())
}

fn interface() -> Result<(Resolve, WorldId), Error> {
    let failed = |e| Error::Interface(format!("{e:#}"));
    let mut resolve = Resolve::default();
    let package = resolve.push_str("module.wit", WIT).map_err(failed)?;
    let world = resolve.select_world(package, Some(WORLD)).map_err(failed)?;
    Ok((resolve, world))
}
