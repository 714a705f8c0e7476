//! A component that fails once, in a chosen operation: it dies at a chosen point of it, or says that it cannot do it.

use std::path::PathBuf;

use outlast_glue_rt::{Call, Component, Operation, Point, Stop};

#[derive(Clone)]
pub struct Faulty<C> {
    component: C,
    /// And the file that is there as long as it has not failed.
    fault: Option<(u32, Failure, PathBuf)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    Death(Point),
    /// As of a register that was harmed for a moment.
    Error,
}

/// What says that it is to be an error, where else a point is named.
pub const ERROR: &str = "Error";

impl<C: Component> Faulty<C> {
    /// `arguments`: operation, point and file; without them it does not fail.
    pub fn new(component: C, arguments: &[String]) -> Self {
        let fault = match arguments {
            [operation, point, file] => {
                let operation = component.operations().iter().position(|known| known.name == operation);
                let death = Point::ALL.into_iter().find(|known| format!("{known:?}") == *point).map(Failure::Death);
                let failure = if point == ERROR { Some(Failure::Error) } else { death };
                operation.zip(failure).map(|(operation, failure)| (operation as u32, failure, PathBuf::from(file)))
            }
            _ => None,
        };
        Self { component, fault }
    }

    fn fails(&self, operation: u32, failure: Failure) -> bool {
        let fault = self.fault.as_ref().filter(|(wanted, known, _)| (*wanted, *known) == (operation, failure));
        fault.is_some_and(|(_, _, file)| std::fs::remove_file(file).is_ok())
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
        if self.fails(call.operation(), Failure::Error) {
            return Err(Stop::Errno(libc::EIO));
        }
        self.component.dispatch(call)
    }

    fn reached(&self, point: Point, operation: u32) {
        if self.fails(operation, Failure::Death(point)) {
            // SAFETY: ends this very process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
    }
}
