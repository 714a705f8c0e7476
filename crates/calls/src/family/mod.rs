//! The rows, by family. One macro gives each row its place in the table and a test of its own.

macro_rules! rows {
    ($($nr:literal $name:ident $class:ident $(.$fact:ident($($value:tt)*))*;)*) => {
        pub(crate) const ROWS: &[crate::Row] = &[
            $(crate::Row::new($nr, stringify!($name), crate::Class::$class)$(.$fact($($value)*))*,)*
        ];

        #[cfg(test)]
        pastey::paste! {
            $(
                #[test]
                #[allow(non_snake_case, reason = "_sysctl begins with an underscore")]
                fn [<row_ $name>]() {
                    crate::checks::row(stringify!($name), $nr, crate::checks::numbers::[<__NR_ $name>]);
                }
            )*
        }
    };
}

mod absent;
mod attributes;
mod descriptors;
mod memory;
mod metadata;
mod names;
mod objects;
mod processes;
mod readiness;
mod scheduling;
mod security;
mod signals;
mod sockets;
mod threads;
mod time;
mod transfer;

/// All families; the order has no meaning.
pub(crate) const FAMILIES: &[&[crate::Row]] = &[
    absent::ROWS,
    attributes::ROWS,
    descriptors::ROWS,
    memory::ROWS,
    metadata::ROWS,
    names::ROWS,
    objects::ROWS,
    processes::ROWS,
    readiness::ROWS,
    scheduling::ROWS,
    security::ROWS,
    signals::ROWS,
    sockets::ROWS,
    threads::ROWS,
    time::ROWS,
    transfer::ROWS,
];
