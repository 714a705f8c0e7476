//! A component that fails once, at a chosen point of a chosen operation.

use std::path::PathBuf;

use outlast_glue_rt::{Call, Component, Operation, Point, Stop};

#[derive(Clone)]
pub struct Faulty<C> {
    component: C,
    /// And the file that is there as long as it has not failed.
    fault: Option<(u32, Point, PathBuf)>,
}

impl<C: Component> Faulty<C> {
    /// `arguments`: operation, point and file; without them it does not fail.
    pub fn new(component: C, arguments: &[String]) -> Self {
        let fault = match arguments {
            [operation, point, file] => {
                let operation = component.operations().iter().position(|known| known.name == operation);
                let point = Point::ALL.into_iter().find(|known| format!("{known:?}") == *point);
                operation.zip(point).map(|(operation, point)| (operation as u32, point, PathBuf::from(file)))
            }
            _ => None,
        };
        Self { component, fault }
    }
}

impl<C: Component> Component for Faulty<C> {
    fn operations(&self) -> &'static [Operation] {
        self.component.operations()
    }

    fn is_global(&self) -> bool {
        self.component.is_global()
    }

    fn born(&mut self) -> std::io::Result<()> {
        self.component.born()
    }

    fn dispatch(&mut self, call: &mut Call<'_>) -> Result<(), Stop> {
        self.component.dispatch(call)
    }

    fn reached(&self, point: Point, operation: u32) {
        if let Some((wanted, at, file)) = &self.fault {
            if (*wanted, *at) == (operation, point) && std::fs::remove_file(file).is_ok() {
                // SAFETY: ends this very process.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            }
        }
    }
}
