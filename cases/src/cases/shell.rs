//! Shells, and programs that become another program.

use crate::case::{Case, Program, SPREAD};
use crate::drive::{Drive, Input, Script, Step};
use crate::launch::program;

pub const CASES: &[Case] = &[
    Case::new("bash_script", |_| Ok(Program::new(&["/bin/bash", "-c", SCRIPT])), |_| Drive::Pipes(Input::none()))
        .needs(&["/bin/bash"]),
    Case::new(
        "bash_interactive",
        |_| Ok(Program::new(&["/bin/bash", "--norc", "-i"]).with_env("PS1", "ready> ")),
        |_| Drive::Terminal(conversation()),
    )
    .needs(&["/bin/bash"])
    .pace(SPREAD),
    Case::new(
        "wrapped_counter",
        |_| {
            let exec = format!("exec {} 20000", program("counter"));
            Ok(Program::new(&["/usr/bin/env", "A=1", "/usr/bin/nice", "-n", "1", "/bin/sh", "-c", &exec]))
        },
        |_| Drive::Pipes(Input::none().sipping(3000)),
    )
    .needs(&["/usr/bin/env", "/usr/bin/nice", "/bin/sh"]),
];

const SCRIPT: &str = r#"
declare -A seen
for ((i = 0; i < 2000; i++)); do
    key=$((i * 7919 % 613))
    seen[$key]=${seen[$key]:-}x
    printf '%d %d %s\n' "$i" "$key" "${seen[$key]}"
    if ((i % 100 == 0)); then printf '%s\n' "${#seen[@]}" >> sizes; fi
done
exit 5
"#;

fn conversation() -> Script {
    let prompt = "\nready>";
    let mut steps = vec![Step::wait("ready>"), Step::line("declare -i n=1"), Step::answer("n=1", prompt)];
    for i in 0..30 {
        steps.push(Step::line(&format!("n=n*3%10007; echo \"after {i}:\" $n")));
        steps.push(Step::answer(&format!("\nafter {i}: "), prompt));
    }
    steps.extend([
        Step::look("counted"),
        Step::line("echo ${HOME:+home} $LINENO"),
        Step::answer("\nhome ", prompt),
        Step::look("asked"),
        Step::line("exit 9"),
    ]);
    Script::new(steps)
}
