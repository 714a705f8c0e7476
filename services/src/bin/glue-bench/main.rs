//! What calls to components, their tracking and their recovery cost, and how many lines it takes to have them: SuperGlue's tables and
//! its Figure 6 beside which the web server's throughput (`glue-web-bench`) stands.

mod across;
mod clock;
mod harm;
mod lines;
mod locks;
mod pipe;
mod services;

use clap::builder::PossibleValuesParser;
use clap::{value_parser, Parser, ValueEnum};

/// Measures components.
///
/// All but what goes `across` runs on one processor, where a hand-over is a context switch. Exit status: 0 measured, 1 not, 2 wrong usage.
#[derive(Parser)]
#[command(name = "glue-bench", version)]
struct Options {
    /// What to measure.
    #[arg(value_enum, default_value = "locks")]
    what: What,
    /// How often.
    #[arg(long, value_name = "N", default_value = "20", value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// Which of the services; all without it.
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(services::NAMES))]
    service: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Calls of locks in detail, beside a pipe.
    Locks,
    /// Tracking and recovery of each of the six services.
    Services,
    /// Calls from one processor to another.
    Across,
    /// Lines of interfaces, of what glue writes of them, and of what is written by hand.
    Lines,
}

fn main() {
    let options = Options::parse();
    let text = match options.what {
        What::Lines => lines::table(),
        What::Across => match across::measure(options.rounds) {
            Some(text) => text,
            None => {
                eprintln!("glue-bench: there is one processor only: nothing to measure");
                std::process::exit(1);
            }
        },
        What::Locks => {
            stay_on(this_processor());
            locks::measure(options.rounds)
        }
        What::Services => {
            stay_on(this_processor());
            services::measure(options.rounds, &options.service)
        }
    };
    print!("{text}");
}

fn this_processor() -> usize {
    // SAFETY: asks for a number.
    unsafe { libc::sched_getcpu() }.max(0) as usize
}

/// Children inherit it.
fn stay_on(processor: usize) {
    // SAFETY: a zeroed set is valid.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}
