//! What calls to components, their tracking and their recovery cost, and how many lines it takes to have them: SuperGlue's tables and
//! its Figure 6 beside which the web server's throughput (`glue-web-bench`) stands.

mod clock;
mod harm;
mod lines;
mod locks;
mod pipe;
mod services;

use clap::{value_parser, Parser, ValueEnum};

/// Measures components.
///
/// All runs on one processor, where a hand-over is a context switch.
#[derive(Parser)]
#[command(name = "glue-bench", version)]
struct Options {
    /// What to measure.
    #[arg(value_enum, default_value = "locks")]
    what: What,
    /// How often.
    #[arg(long, value_name = "N", default_value = "20", value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Calls of locks in detail, beside a pipe.
    Locks,
    /// Tracking and recovery of each of the six services.
    Services,
    /// Lines of interfaces, of what glue writes of them, and of what is written by hand.
    Lines,
}

fn main() {
    let options = Options::parse();
    let text = match options.what {
        What::Lines => lines::table(),
        What::Locks => {
            stay_on_one_processor();
            locks::measure(options.rounds)
        }
        What::Services => {
            stay_on_one_processor();
            services::measure(options.rounds)
        }
    };
    print!("{text}");
}

fn stay_on_one_processor() {
    // SAFETY: a zeroed set is valid; one that runs here is set in it. Children inherit it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu().max(0) as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}
