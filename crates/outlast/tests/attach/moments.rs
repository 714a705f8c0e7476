//! Seeded random moments.

use std::time::Duration;

/// Moments for the hammer, the same ones for the same seed.
pub struct Moments(u64);

impl Moments {
    pub fn new() -> Self {
        let given = std::env::var("OUTLAST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos().into());
        println!("OUTLAST_SEED={seed}");
        Self(seed)
    }

    pub fn pause(&mut self, at_most_us: u64) {
        // Numerical Recipes' generator.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros((self.0 >> 33) % at_most_us));
    }
}
