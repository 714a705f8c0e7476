//! Lines of code, without blank ones and comments.

/// A service's interface, its stubs, those that carry calls alone, and a client's side by hand, where there is one.
struct Service {
    name: &'static str,
    interface: &'static str,
    stubs: &'static str,
    untracked: &'static str,
    by_hand: Option<&'static str>,
}

macro_rules! services {
    ($($name:literal: $by_hand:expr),*) => {
        [$(Service {
            name: $name,
            interface: include_str!(concat!("../../../interfaces/", $name, ".glue")),
            stubs: include_str!(concat!(env!("OUT_DIR"), "/", $name, ".rs")),
            untracked: include_str!(concat!(env!("OUT_DIR"), "/", $name, "_untracked.rs")),
            by_hand: $by_hand,
        }),*]
    };
}

const SERVICES: [Service; 6] = services! {
    "event": Some(include_str!("../../by_hand/event.rs")),
    "fs": Some(include_str!("../../by_hand/fs.rs")),
    "lock": Some(include_str!("../../by_hand/lock.rs")),
    "memory": None,
    "scheduler": None,
    "timer": None
};

/// Where the client's side begins in what glue writes: the first type of its.
const CLIENTS: [&str; 2] = ["struct Data {", "pub struct Client {"];

fn count(text: &str) -> usize {
    let mut comment = false;
    let mut count = 0;
    for line in text.lines().map(str::trim) {
        let begins = line.starts_with("/*");
        let written = !comment && !begins && !line.is_empty() && !line.starts_with("//");
        comment = (comment || begins) && !line.ends_with("*/");
        count += usize::from(written);
    }
    count
}

/// The client's side of generated stubs.
fn clients(stubs: &str) -> &str {
    CLIENTS.iter().find_map(|begin| stubs.find(begin)).map_or(stubs, |at| &stubs[at..])
}

pub fn table() -> String {
    let mut text = "| service | interface | glue writes | of that the client's side | the same without tracking and recovery | the client's side by hand |\n\
                    |---|---|---|---|---|---|\n"
        .to_string();
    let mut sums = [0; 4];
    for service in &SERVICES {
        let counts = [
            count(service.interface),
            count(service.stubs),
            count(clients(service.stubs)),
            count(clients(service.untracked)),
        ];
        let by_hand = service.by_hand.map_or("–".to_string(), |text| count(text).to_string());
        let [interface, stubs, client, untracked] = counts;
        text.push_str(&format!("| {} | {interface} | {stubs} | {client} | {untracked} | {by_hand} |\n", service.name));
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    let [interface, stubs, client, untracked] = sums;
    let by_hand: usize = SERVICES.iter().filter_map(|service| service.by_hand).map(count).sum();
    text.push_str(&format!("| all | {interface} | {stubs} | {client} | {untracked} | {by_hand} |\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::{clients, count, table, SERVICES};

    #[test]
    fn comments_and_blank_lines_are_none() {
        assert_eq!(count("/* one\n * two */\nint f(void);\n\n\t// three\n/* four */\nx\n"), 2);
    }

    #[test]
    fn every_service_has_its_lines_and_an_interface_a_third_of_those_by_hand_at_most() {
        for service in &SERVICES {
            let (interface, client) = (count(service.interface), count(clients(service.stubs)));
            assert!(service.by_hand.is_none_or(|text| count(text) > 3 * interface), "{}", service.name);
            assert!(client < count(service.stubs) && client > count(clients(service.untracked)), "{}", service.name);
        }
        assert_eq!(table().lines().count(), SERVICES.len() + 3);
    }
}
