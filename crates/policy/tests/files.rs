//! Policies as files: what counts, what is refused and where, and what stays then.

use outlast_policy::{parse, Folder, Policies, Policy, Refusal, Setting, Subject, Verdict};
use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::Path;
use tempfile::TempDir;

/// Stands for the command line: no commit but visible, no more than nine retries.
fn check(settings: &[Setting]) -> Result<(), (usize, String)> {
    let wrong = |setting: &Setting| match (setting.name.as_str(), setting.value.as_deref()) {
        ("commit", Some("visible")) => false,
        ("commit", _) => true,
        ("retries", Some(value)) => value.len() > 1,
        _ => false,
    };
    settings.iter().position(wrong).map_or(Ok(()), |at| Err((at, format!("no such {}", settings[at].name))))
}

fn parsed(text: &str) -> Result<Vec<Policy>, Refusal> {
    parse(Path::new("a.toml"), text, false, &check)
}

fn refused(text: &str) -> (usize, String) {
    let refusal = parsed(text).expect_err("it is wrong");
    (refusal.line, refusal.reason)
}

fn subject<'a>(executable: &'a str, user: &'a str, cgroup: &'a str) -> Subject<'a> {
    Subject {
        executable: Path::new(executable),
        uid: if user == "daemon" { 1 } else { user.parse().unwrap_or(1000) },
        cgroup,
    }
}

fn folder(dir: &TempDir) -> Vec<Folder> {
    vec![Folder { path: dir.path().into(), user: None }]
}

fn write(dir: &TempDir, name: &str, text: &str) {
    let path = dir.path().join(name);
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("mode");
}

const FIVE_LINES: &str = r#"[[protect]]
executable = "/opt/db/*/bin/server"
user = "daemon"
commit = "visible"
retries = 5
"#;

#[test]
fn five_lines_protect_a_database() {
    let policies = parsed(FIVE_LINES).expect("right");
    let [policy] = &policies[..] else { panic!("one entry") };
    assert!(policy.fits(&subject("/opt/db/15/bin/server", "daemon", "/")));
    assert!(!policy.fits(&subject("/opt/db/15/bin/server", "101", "/")));
    assert!(!policy.fits(&subject("/opt/db/15/old/bin/server", "daemon", "/")), "* stays within a folder");
    let Verdict::Protect(settings) = &policy.verdict else { panic!("it protects") };
    let arguments: Vec<_> = settings.iter().map(Setting::argument).collect();
    assert_eq!(arguments, ["--commit=visible", "--retries=5"]);
}

#[test]
fn conditions_are_about_user_group_and_unit_and_all_must_hold() {
    let policies = parsed("[[protect]]\nunit = \"redis*.service\"\nuser = 1000\n").expect("right");
    let fits = |user, cgroup| policies[0].fits(&subject("/usr/bin/redis-server", user, cgroup));
    assert!(fits("redis", "/system.slice/redis-server.service"));
    assert!(!fits("redis", "/system.slice/nginx.service"));
    assert!(!fits("redis", "/"));
    let policies = parsed("[[protect]]\ncgroup = \"/machine.slice/**\"\n").expect("right");
    assert!(policies[0].fits(&subject("/bin/a", "a", "/machine.slice/x/y")));
    assert!(!policies[0].fits(&subject("/bin/a", "a", "/system.slice/x")));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let cases = [
        ("[[protect]]\nexecutable = \"/bin/a\"\ncommit = \"sometimes\"\n", 3, "no such commit"),
        ("[[protect]]\nexecutable = \"/bin/a\"\n\nretrys = 3\n", 4, "unknown key \"retrys\""),
        ("[[protect]]\nexecutable = \"bin/a\"\n", 2, "begins with a slash"),
        ("[[protect]]\nexecutable = \"/bin/***\"\n", 2, "executable: "),
        ("[[protect]]\nexecutable = 3\n", 2, "a text in quotes"),
        ("[[protect]]\ncommit = \"visible\"\n", 1, "it says of no program"),
        ("[protect]\nexecutable = \"/bin/a\"\n", 1, "two brackets"),
        ("protect = [1]\n", 1, "its keys below it"),
        ("[[keep]]\nuser = \"a\"\n", 1, "unknown key \"keep\""),
        ("[[leave]]\nuser = \"a\"\nretries = 1\n", 3, "left alone"),
        ("[[protect]]\nuser = \"a\nretries = 1\n", 2, ""),
        ("[[protect]]\nuser = \"a\"\nuser = \"b\"\n", 3, "duplicate key"),
        ("[[protect]]\nuser = \"a\\u0000\"\n", 2, "NUL"),
    ];
    for (text, line, reason) in cases {
        let (at, why) = refused(text);
        assert!(at == line && why.contains(reason), "{text:?} is refused in line {at}: {why}");
    }
}

#[test]
fn the_first_entry_that_fits_counts_whatever_its_kind() {
    let dir = TempDir::new().expect("folder");
    write(&dir, "10-first.toml", "[[leave]]\nuser = \"101\"\n[[protect]]\nuser = \"102\"\n[[leave]]\nuser = \"102\"\n");
    write(&dir, "20-second.toml", "[[protect]]\nuser = \"101\"\n[[protect]]\nuser = \"103\"\n");
    write(&dir, "30-no-policy.txt", "nonsense");
    let mut policies = Policies::default();
    assert_eq!(policies.load(&folder(&dir), &check), []);
    let verdict = |user| policies.find(&subject("/bin/a", user, "/")).map(|policy| policy.verdict.clone());
    let protect = Some(Verdict::Protect(Vec::new()));
    assert_eq!(verdict("101"), Some(Verdict::Leave));
    assert_eq!((verdict("102"), verdict("103"), verdict("104")), (protect.clone(), protect, None));
}

#[test]
fn a_refused_file_leaves_what_it_said_before_and_one_that_is_gone_leaves_nothing() {
    let dir = TempDir::new().expect("folder");
    write(&dir, "a.toml", "[[protect]]\nuser = \"103\"\n");
    write(&dir, "b.toml", "[[protect]]\nuser = \"102\"\n");
    let mut policies = Policies::default();
    assert_eq!(policies.load(&folder(&dir), &check), []);
    write(&dir, "a.toml", "[[protect]]\nuser = \"104\"\n[[protect]]\nwrong = 1\n");
    fs::remove_file(dir.path().join("b.toml")).expect("removed");
    let refusals = policies.load(&folder(&dir), &check);
    assert_eq!(refusals.iter().map(|refusal| refusal.line).collect::<Vec<_>>(), [4]);
    let is = |policies: &Policies, user| policies.find(&subject("/bin/a", user, "/")).is_some();
    assert!(is(&policies, "103") && !is(&policies, "104") && !is(&policies, "102"));
    write(&dir, "a.toml", "[[protect]]\nuser = \"104\"\n");
    assert_eq!(policies.load(&folder(&dir), &check), []);
    assert!(is(&policies, "104") && !is(&policies, "103"));
}

#[test]
fn a_user_designates_own_programs_only() {
    let dir = TempDir::new().expect("folder");
    write(&dir, "a.toml", "[[protect]]\nexecutable = \"/bin/a\"\n");
    let mut policies = Policies::default();
    assert_eq!(policies.load(&[Folder { path: dir.path().into(), user: Some(1000) }], &check), []);
    let of = |uid| policies.find(&Subject { uid, ..subject("/bin/a", "a", "/") }).is_some();
    assert!(of(1000) && !of(1001) && !of(0));
}

#[test]
fn a_user_holds_nobody_up() {
    let of_user = |text: &str| parse(Path::new("a.toml"), text, true, &check).map(|policies| policies.len());
    let refused = |text: &str| of_user(text).expect_err("it is refused").reason;
    assert_eq!(of_user("[[protect]]\nexecutable = \"/opt/a/serve-*\"\nunit = \"*.scope\"\n"), Ok(1));
    assert!(refused("[[protect]]\nunit = \"a.service\"\n").contains("names an executable"));
    assert!(refused("[[protect]]\nexecutable = \"/*/*/a\"\n").contains("only the last part"));
    assert!(refused("[[protect]]\nexecutable = \"/**\"\n").contains("no **"));
    assert!(refused("[[protect]]\nexecutable = \"/bin/*a*a*a*\"\n").contains("2 wildcards"));
    assert!(refused(&"[[leave]]\nexecutable = \"/bin/a\"\n".repeat(65)).contains("64 entries"));
    let dir = TempDir::new().expect("folder");
    (0..20).for_each(|n| write(&dir, &format!("{n}.toml"), "[[protect]]\nexecutable = \"/bin/a\"\n"));
    let mut policies = Policies::default();
    let refusals = policies.load(&[Folder { path: dir.path().into(), user: Some(1000) }], &check);
    assert!(refusals.len() == 1 && policies.all().count() == 16, "{refusals:?}");
}

#[test]
fn files_that_others_could_have_written_are_refused() {
    let dir = TempDir::new().expect("folder");
    write(&dir, "open.toml", "[[protect]]\nuser = \"a\"\n");
    fs::set_permissions(dir.path().join("open.toml"), fs::Permissions::from_mode(0o666)).expect("mode");
    symlink("/etc/passwd", dir.path().join("link.toml")).expect("link");
    fs::create_dir(dir.path().join("folder.toml")).expect("folder");
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("pipe.toml"), 0o600.into()).expect("pipe");
    write(&dir, "long.toml", &"# \n".repeat(1 << 19));
    let mut policies = Policies::default();
    let refusals = policies.load(&folder(&dir), &check);
    let reasons: Vec<_> = refusals.iter().map(|refusal| refusal.reason.as_str()).collect();
    assert_eq!(policies.all().count(), 0);
    let expected = ["no file", "a link", "longer", "others may write", "no file"];
    assert!(reasons.iter().zip(expected).all(|(reason, part)| reason.contains(part)), "{reasons:?}");
    assert_eq!(reasons.len(), expected.len());
}

#[test]
fn a_link_that_is_named_means_what_it_leads_to() {
    let dir = TempDir::new().expect("folder");
    let path = dir.path().canonicalize().expect("path");
    fs::create_dir(path.join("real")).expect("folder");
    fs::write(path.join("real/python3.11"), "").expect("file");
    symlink("real/python3.11", path.join("python3")).expect("link");
    let text = format!("[[protect]]\nexecutable = {:?}\n", path.join("python3"));
    let policies = parsed(&text).expect("right");
    let real = path.join("real/python3.11");
    assert!(policies[0].fits(&Subject { executable: &real, ..subject("", "a", "/") }));
    let folders = policies[0].folders().expect("folders");
    assert_eq!(folders.into_iter().collect::<Vec<_>>(), [path.clone(), path.join("real")]);
}
