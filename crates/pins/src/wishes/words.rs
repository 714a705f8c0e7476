//! What modules are told, as options of `outlast run`.

use super::Wishes;
use outlast_interfaces::sysc::Visible;
use outlast_interfaces::{checkpoint, crash, generations, hang, leaks, server, storm, visible};
use std::time::Duration;

/// Bytes, as people write them.
fn size(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let whole = units.into_iter().find(|(_, unit)| bytes % unit == 0);
    whole.map_or(bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

impl Wishes {
    /// What a module is told, as options of `outlast run`; none: it does not protect the program.
    pub fn words(&self, module: &str) -> Option<String> {
        let words = match module {
            crash::NAME => format!("--retries {}", self.crash?.retries),
            visible::NAME => match self.visible?.outputs {
                Visible::Together => "--commit visible".into(),
                Visible::Each => "--commit each".into(),
            },
            server::NAME => self.server.map(|server::Settings {}| "--server".into())?,
            checkpoint::NAME => match self.checkpoint? {
                checkpoint::AUTO => "--every auto".into(),
                checkpoint::Settings { every, .. } => format!("--every {}", humantime::format_duration(every)),
            },
            generations::NAME => {
                let generations::Settings { every, keep, budget } = self.generations?;
                let time = |time: Duration| humantime::format_duration(time).to_string().replace(' ', "");
                format!("--generations {}:{}:{}", time(every), time(keep), size(budget))
            }
            hang::NAME => {
                let limit = self.hang?.limit.map(|limit| format!("={}", humantime::format_duration(limit)));
                let sections = (!self.sections.is_empty()).then(|| format!(" --sections {}", self.sections.join(",")));
                format!("--hang{}{}", limit.unwrap_or_default(), sections.unwrap_or_default())
            }
            storm::NAME => {
                let storm::Settings { most, within } = self.storm?;
                let alert = self.alert.iter().map(|word| format!(" --alert={word}")).collect::<String>();
                format!("--storm {most}:{}{alert}", humantime::format_duration(within).to_string().replace(' ', ""))
            }
            leaks::NAME => {
                let leaks::Settings { window, percent } = self.leaks?;
                format!("--leaks {}:{percent}", humantime::format_duration(window).to_string().replace(' ', ""))
            }
            _ => {
                let plugin = self.plugins.iter().find(|plugin| plugin.name == module)?;
                format!("--module {module}={}", plugin.settings)
            }
        };
        Some(words)
    }
}
