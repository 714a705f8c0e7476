//! How much memory a component may have.

use wasmtime::ResourceLimiter;

/// Entries of all its tables.
const TABLES: usize = 100_000;
/// A component is made of several: its own code, and small ones between it and us.
const INSTANCES: usize = 32;

/// What one component has, of what it may have.
pub struct Limits {
    memory: usize,
    memory_left: usize,
    tables_left: usize,
    pub is_exceeded: bool,
}

impl Limits {
    pub fn new(memory: usize) -> Self {
        Self { memory, memory_left: memory, tables_left: TABLES, is_exceeded: false }
    }

    /// Takes from `left` what it grows by; more than there is ends the component.
    fn take(left: &mut usize, is_exceeded: &mut bool, current: usize, desired: usize) -> wasmtime::Result<bool> {
        match left.checked_sub(desired.saturating_sub(current)) {
            Some(rest) => {
                *left = rest;
                Ok(true)
            }
            None => {
                *is_exceeded = true;
                Err(wasmtime::Error::msg("more than it may have"))
            }
        }
    }
}

impl ResourceLimiter for Limits {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // Beyond its own maximum it is refused in any case, and takes nothing.
        if maximum.is_some_and(|maximum| desired > maximum) && desired <= self.memory {
            return Ok(false);
        }
        Self::take(&mut self.memory_left, &mut self.is_exceeded, current, desired)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) && desired <= TABLES {
            return Ok(false);
        }
        Self::take(&mut self.tables_left, &mut self.is_exceeded, current, desired)
    }

    fn instances(&self) -> usize {
        INSTANCES
    }

    fn tables(&self) -> usize {
        INSTANCES
    }

    fn memories(&self) -> usize {
        INSTANCES
    }
}
