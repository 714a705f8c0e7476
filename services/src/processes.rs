//! Components of another process, found by what the kernel knows of its children: for those who harm them.

/// Children of all threads of a process, those that are dead and not waited for as well.
pub fn children(process: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let lists = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("children")));
    let numbers = |list: String| list.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<_>>();
    lists.flatten().flat_map(numbers).collect()
}

/// The template of a component that a process has started; it stays when its instances, which are its children, die.
pub fn template(process: u32, component: &str) -> Option<u32> {
    children(process).into_iter().find(|child| {
        let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        let name = line.split(|byte| *byte == 0).nth(1).unwrap_or_default();
        name.strip_suffix(b"-untracked").unwrap_or(name) == component.as_bytes()
    })
}
