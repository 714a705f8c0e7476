//! `service_global_info`: known, there once, not against each other.

use crate::diagnostic::{similar, Diagnostic};
use crate::model::{Parent, Properties};
use crate::syntax::{File, Flag};

const FLAGS: [&str; 12] = [
    "service",
    "desc_close_self_only",
    "desc_close_subtree",
    "desc_dep_create_none",
    "desc_dep_create_same",
    "desc_dep_create_diff",
    "desc_dep_close_removal",
    "desc_dep_close_keep",
    "desc_global",
    "desc_block",
    "desc_has_data",
    "resc_has_data",
];

/// Of each group one at most may be true; of those marked exactly one.
const GROUPS: [(&[&str], bool, &str); 3] = [
    (&["desc_close_self_only", "desc_close_subtree"], true, "what else is closed with a descriptor"),
    (
        &["desc_dep_create_none", "desc_dep_create_same", "desc_dep_create_diff"],
        true,
        "whether a descriptor has a parent",
    ),
    (&["desc_dep_close_removal", "desc_dep_close_keep"], false, "whether tracking data goes with its descriptor"),
];

pub fn properties(file: &File, diagnostics: &mut Vec<Diagnostic>) -> Option<(String, Properties)> {
    let Some(info) = file.info.first() else {
        let complaint = Diagnostic::error(file.length..file.length, "no `service_global_info`", "the file ends here");
        diagnostics.push(complaint.hint("begin with `service_global_info = { service = NAME, … };`"));
        return None;
    };
    for again in &file.info[1..] {
        diagnostics.push(
            Diagnostic::error(again.clone(), "a second `service_global_info`", "one is enough")
                .and(info.clone(), "the first"),
        );
    }
    for (at, flag) in file.flags.iter().enumerate() {
        known(flag, diagnostics);
        if let Some(first) = file.flags[..at].iter().find(|first| first.name.text == flag.name.text) {
            let complaint = format!("`{}` is given twice", flag.name.text);
            diagnostics.push(
                Diagnostic::error(flag.name.span.clone(), complaint, "again").and(first.name.span.clone(), "before"),
            );
        }
    }
    let set = |name: &str| file.flags.iter().find(|flag| flag.name.text == name && flag.value.text == "true");
    for (group, needed, about) in GROUPS {
        let chosen: Vec<&Flag> = group.iter().filter_map(|name| set(name)).collect();
        if chosen.len() > 1 {
            let complaint = format!("`{}` contradicts `{}`", chosen[1].name.text, chosen[0].name.text);
            diagnostics.push(
                Diagnostic::error(chosen[1].name.span.clone(), complaint, "both are true")
                    .and(chosen[0].name.span.clone(), "against this")
                    .hint(format!("they say {about}: leave one")),
            );
        } else if chosen.is_empty() && needed {
            let complaint = format!("nothing says {about}");
            diagnostics.push(
                Diagnostic::error(info.clone(), complaint, "missing here")
                    .hint(format!("make one of {} true", group.join(", "))),
            );
        }
    }
    let Some(service) = file.flags.iter().find(|flag| flag.name.text == "service") else {
        diagnostics.push(
            Diagnostic::error(info.clone(), "the service has no name", "missing here").hint("add `service = NAME`"),
        );
        return None;
    };
    let parent = match (set("desc_dep_create_same"), set("desc_dep_create_diff")) {
        (Some(_), _) => Parent::Same,
        (_, Some(_)) => Parent::Different,
        _ => Parent::None,
    };
    Some((
        service.value.text.clone(),
        Properties {
            close_subtree: set("desc_close_subtree").is_some(),
            parent,
            keep_closed: set("desc_dep_close_keep").is_some(),
            global: set("desc_global").is_some(),
            blocks: set("desc_block").is_some(),
            descriptor_data: set("desc_has_data").is_some(),
            resource_data: set("resc_has_data").is_some(),
        },
    ))
}

fn known(flag: &Flag, diagnostics: &mut Vec<Diagnostic>) {
    if !FLAGS.contains(&flag.name.text.as_str()) {
        let complaint = format!("unknown property `{}`", flag.name.text);
        let complaint = Diagnostic::error(flag.name.span.clone(), complaint, "no property of a service");
        diagnostics.push(match similar(&flag.name.text, FLAGS) {
            Some(meant) => complaint.hint(format!("did you mean `{meant}`?")),
            None => complaint.hint(format!("there are {}", FLAGS.join(", "))),
        });
    } else if flag.name.text != "service" && !["true", "false"].contains(&flag.value.text.as_str()) {
        let complaint = format!("expected `true` or `false`, found `{}`", flag.value.text);
        diagnostics.push(Diagnostic::error(flag.value.span.clone(), complaint, "neither true nor false"));
    }
}
