//! Test hooks: in an engine built for the mutation run each mechanism can be switched off.

use outlast_image::mutant::Mutant;

/// Must the engine do without this mechanism?
#[cfg(feature = "mutants")]
#[inline]
pub fn without(mutant: Mutant) -> bool {
    // SAFETY: only an integer is read that nobody changes while the program runs.
    mutant.is_in(unsafe { crate::state::engine() }.args.mutants)
}

/// Must the engine do without this mechanism? Never.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub const fn without(_: Mutant) -> bool {
    false
}
