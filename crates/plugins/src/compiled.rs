//! A component that fits: compiled, and checked against the world.

use crate::bindings::{Module, ModulePre};
use crate::engine::engine;
use crate::error::Error;
use crate::host::Host;
use wasmtime::component::{Component, HasSelf, Linker};

/// What one can be made from again and again.
pub struct Compiled(pub(crate) ModulePre<Host>);

/// The first bytes of a core module, and of a component.
const CORE: &[u8] = b"\0asm\x01\0\0\0";
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

impl Compiled {
    /// Of the bytes of a file, which anybody may have written.
    ///
    /// # Errors
    /// They are no component, or one that is made for something else. None of its code has run.
    pub fn of(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.starts_with(CORE) {
            return Err(Error::CoreModule);
        }
        if !bytes.starts_with(COMPONENT) {
            return Err(Error::NotAComponent("it does not begin as one".into()));
        }
        let engine = engine()?;
        let component = Component::from_binary(engine, bytes).map_err(|e| Error::NotAComponent(in_a_line(&e)))?;
        let mut linker = Linker::new(engine);
        let linked = Module::add_to_linker::<_, HasSelf<_>>(&mut linker, |host: &mut Host| host);
        linked.map_err(|e| Error::Here(in_a_line(&e)))?;
        let fits = linker.instantiate_pre(&component).and_then(ModulePre::new);
        fits.map(Self).map_err(|e| Error::OtherWorld(in_a_line(&e)))
    }
}

/// An error with its causes. It may quote the file.
pub fn in_a_line(e: &wasmtime::Error) -> String {
    crate::host::legible(&format!("{e:#}"))
}
