//! T26: what is a skill, and what is told of what is none, row by row.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use super::*;
use crate::source::skill::fixture::Home;

const GOOD: &[u8] = b"---\ndescription: d\n---\n";

fn scan(home: &Home) -> Found {
    Scanner::new(home.workspace(), vec!["skills".to_owned()]).scan()
}

fn names(found: &Found) -> Vec<&str> {
    found.skills.iter().map(|skill| skill.name.as_str()).collect()
}

/// Returns code, name and message of each diagnostic.
fn told(found: &Found) -> Vec<(&str, &str, &str)> {
    let told = found.diagnostics.iter();
    told.map(|it| (it.code.as_str(), it.wire_name.as_deref().unwrap_or(""), it.message.as_str()))
        .collect()
}

/// Code, name, what is said, and the file that is written below the folder of skills.
const ROWS: [(&str, &str, &str, &str, &[u8]); 18] = [
    ("INVALID_NAME", "Upper", "lower-case words", "Upper/SKILL.md", GOOD),
    ("INVALID_NAME", "a_b", "lower-case words", "a_b/SKILL.md", GOOD),
    ("INVALID_NAME", "a--b", "lower-case words", "a--b/SKILL.md", GOOD),
    ("INVALID_NAME", "-a", "lower-case words", "-a/SKILL.md", GOOD),
    ("INVALID_NAME", "ä", "lower-case words", "ä/SKILL.md", GOOD),
    ("INVALID_NAME", "a\\n", "lower-case words", "a\n/SKILL.md", GOOD),
    ("MISSING_SKILL_FILE", "a", "called exactly SKILL.md", "a/skill.md", GOOD),
    ("MISSING_SKILL_FILE", "a", "called exactly SKILL.md", "a/SKILL.MD", GOOD),
    ("MISSING_SKILL_FILE", "a", "called exactly SKILL.md", "a/b/SKILL.md", GOOD),
    ("INVALID_SKILL", "a", "no regular file", "a/SKILL.md/b", GOOD),
    ("INVALID_SKILL", "a", "no front matter", "a/SKILL.md", b"text"),
    (
        "INVALID_SKILL",
        "a",
        "byte order mark",
        "a/SKILL.md",
        b"\xef\xbb\xbf---\ndescription: d\n---\n",
    ),
    ("INVALID_SKILL", "a", "no `description`", "a/SKILL.md", b"---\nname: a\n---\n"),
    ("INVALID_SKILL", "a", "no `description`", "a/SKILL.md", b"---\ndescription: 7\n---\n"),
    ("INVALID_SKILL", "a", "no `description`", "a/SKILL.md", b"---\ndescription: ' '\n---\n"),
    ("INVALID_SKILL", "a", "no line `---`", "a/SKILL.md", b"---\ndescription: d\n"),
    ("INVALID_SKILL", "a", "is no YAML", "a/SKILL.md", b"---\na: b: c\n---\n"),
    ("INVALID_SKILL", "a", "UTF-8", "a/SKILL.md", b"---\ndescription: \xff\n---\n"),
];

#[test]
fn t26_every_folder_that_is_no_skill_is_told_with_its_reason() {
    for (code, name, message, file, bytes) in ROWS {
        let home = Home::new();
        home.write(&format!("skills/{file}"), bytes);
        let found = scan(&home);
        assert_eq!(names(&found), [""; 0], "{code} {file}");
        let [(of, about, said)] = told(&found)[..] else { panic!("{code} {file}: {found:?}") };
        assert_eq!((of, about), (code, name), "{said}");
        assert!(said.contains(message), "{message}: {said}");
        let place = found.diagnostics[0].place.as_deref().unwrap_or_default();
        assert!(Path::new(place).starts_with(home.workspace().root()), "{place}");
    }
}

#[test]
fn a_text_of_ten_mebibytes_is_not_read() {
    let home = Home::new();
    let text = [GOOD, &vec![b'x'; 10 << 20]].concat();
    home.write("skills/a/SKILL.md", text);
    let found = scan(&home);
    assert!(told(&found)[0].2.contains("more than 1048576 bytes"), "{found:?}");
}

#[test]
fn a_mistake_in_front_matter_has_its_line() {
    let home = Home::new();
    home.write("skills/a/SKILL.md", "---\nname: a\ndescription: b: c\n---\n");
    let place = scan(&home).diagnostics[0].place.clone().unwrap();
    assert!(place.ends_with("skills/a/SKILL.md:3:15"), "{place}");
}

#[test]
fn t26_what_is_odd_about_a_skill_is_told_and_it_stays() {
    let home = Home::new();
    home.write("skills/a/SKILL.md", "---\nname: b\ndescription: d\n---\n");
    home.write("skills/c/SKILL.md", "---\nname: 7\ndescription: d\n---\n");
    home.write("skills/d/SKILL.md", format!("---\ndescription: {}\n---\n", "x".repeat(1025)));
    home.write("skills/e/SKILL.md", GOOD);
    let found = scan(&home);
    assert_eq!(names(&found), ["a", "c", "d", "e"]);
    let all = told(&found);
    assert!(
        all[0].0 == "NAME_MISMATCH" && all[0].2.contains("the name \"b\"; the folder's name `a`"),
        "{all:?}"
    );
    assert!(all[1].0 == "NAME_MISMATCH" && all[1].2.contains("the name 7"), "{all:?}");
    assert!(all[2].0 == "DESCRIPTION_TRUNCATED" && all[2].2.contains("1024 characters"), "{all:?}");
    assert_eq!(all.len(), 3, "{all:?}");
    assert_eq!(found.skills[2].description.chars().count(), 1024);
}

#[test]
fn t26_a_root_that_is_no_folder_is_told() {
    let home = Home::new();
    home.write("file", "");
    symlink("/", home.path("out")).unwrap();
    for root in ["none", "file", "out", "skills/none"] {
        let found = Scanner::new(home.workspace(), vec![root.to_owned()]).scan();
        assert_eq!(
            told(&found).iter().map(|it| it.0).collect::<Vec<_>>(),
            ["ROOT_MISSING"],
            "{root}"
        );
    }
}

#[test]
fn t26_of_two_roots_the_first_one_wins() {
    let home = Home::new();
    home.skill("a");
    home.skill("b");
    home.write("more/a/SKILL.md", GOOD);
    home.write("more/c/SKILL.md", GOOD);
    let roots = ["skills", "none", "more"].map(str::to_owned).into();
    let found = Scanner::new(home.workspace(), roots).scan();
    assert_eq!(names(&found), ["a", "b", "c"]);
    assert_eq!(found.skills[0].description, "does a");
    let all = told(&found);
    assert_eq!(all[0].0, "ROOT_MISSING");
    assert!(
        all[1].0 == "DUPLICATE_NAME"
            && all[1].1 == "a"
            && all[1].2.contains("in skills comes first"),
        "{all:?}"
    );
    assert_eq!(all.len(), 2);
}

#[test]
fn what_is_hidden_or_no_folder_is_not_looked_at() {
    let home = Home::new();
    home.write("skills/.hidden/SKILL.md", GOOD);
    home.write("skills/README.md", "text");
    home.skill("a");
    symlink(home.path("skills/README.md"), home.path("skills/link")).unwrap();
    symlink(home.path("skills/a"), home.path("skills/also-a")).unwrap();
    symlink(home.path("gone"), home.path("skills/nowhere")).unwrap();
    home.write("elsewhere/SKILL.md", GOOD);
    symlink(home.path("elsewhere"), home.path("skills/out")).unwrap();
    let found = scan(&home);
    assert_eq!(names(&found), ["a", "also-a"]);
    let all = told(&found);
    // Where a link leads is not looked at outside of the folder, and a link inside is followed.
    let (first, rest) = all.split_first().unwrap();
    assert!(first.0 == "NAME_MISMATCH" && first.1 == "also-a", "{all:?}");
    assert_eq!(
        rest.iter().map(|it| (it.0, it.1)).collect::<Vec<_>>(),
        [("INVALID_SKILL", "nowhere"), ("INVALID_SKILL", "out")]
    );
    assert!(rest.iter().all(|it| it.2.contains("out of the folder of skills")), "{all:?}");
}

#[test]
fn what_is_hidden_is_no_skill_under_another_name() {
    let home = Home::new();
    home.write("skills/.hidden/SKILL.md", GOOD);
    home.write("skills/b/.text", GOOD);
    home.write("skills/c/..2026/SKILL.md", GOOD);
    symlink(".hidden", home.path("skills/a")).unwrap();
    symlink(".text", home.path("skills/b/SKILL.md")).unwrap();
    symlink("..2026", home.path("skills/c/..data")).unwrap();
    symlink("..data/SKILL.md", home.path("skills/c/SKILL.md")).unwrap();
    let found = scan(&home);
    // Two dots are the way in which a volume of Kubernetes is mounted.
    assert_eq!(names(&found), ["c"]);
    let all = told(&found);
    assert!(
        all[..2].iter().all(|it| it.0 == "INVALID_SKILL" && it.2.contains("hidden")),
        "{all:?}"
    );
    // Of a root, only what is below it counts.
    fs::rename(home.path("skills"), home.path(".skills")).unwrap();
    let found = Scanner::new(home.workspace(), vec![".skills".to_owned()]).scan();
    assert_eq!(names(&found), ["c"]);
}

#[test]
fn a_text_that_leads_out_is_not_read() {
    let home = Home::new();
    home.write("secret.md", GOOD);
    home.write("skills/shared.md", GOOD);
    for name in ["a", "b", "c"] {
        fs::create_dir(home.path(&format!("skills/{name}"))).unwrap();
    }
    symlink(home.path("secret.md"), home.path("skills/a/SKILL.md")).unwrap();
    symlink("/etc/hostname", home.path("skills/b/SKILL.md")).unwrap();
    symlink("../shared.md", home.path("skills/c/SKILL.md")).unwrap();
    let found = scan(&home);
    assert_eq!(names(&found), ["c"]);
    assert!(told(&found).iter().all(|it| it.0 == "INVALID_SKILL" && it.2.contains("leads out")));
}

#[test]
fn a_pipe_or_socket_in_the_place_of_a_text_holds_nothing_up() {
    let home = Home::new();
    fs::create_dir(home.path("skills/pipe")).unwrap();
    nix::unistd::mkfifo(&home.path("skills/pipe/SKILL.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::create_dir(home.path("skills/socket")).unwrap();
    let _listening = UnixListener::bind(home.path("skills/socket/SKILL.md")).unwrap();
    let began = Instant::now();
    let found = scan(&home);
    assert!(began.elapsed() < Duration::from_secs(5));
    let all = told(&found);
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(
        all.iter().all(|it| it.0 == "INVALID_SKILL" && it.2.contains("no regular file")),
        "{all:?}"
    );
}

#[test]
fn too_many_folders_are_told() {
    let home = Home::new();
    for number in 0..=MOST_SKILLS {
        fs::create_dir(home.path(&format!("skills/s{number:04}"))).unwrap();
    }
    home.write("skills/s0000/SKILL.md", GOOD);
    home.write("skills/s1000/SKILL.md", GOOD);
    let found = scan(&home);
    assert_eq!(names(&found), ["s0000"]);
    assert!(told(&found)[0].2.contains("more than 1000 folders"));
}

#[test]
fn a_text_that_is_half_written_is_not_told_of() {
    let home = Home::new();
    let mut scanner = Scanner::new(home.workspace(), vec!["skills".to_owned()]);
    home.skill("a");
    let good = scanner.scan();
    home.write("skills/a/SKILL.md", "");
    assert_eq!(scanner.scan(), good);
    home.write("skills/a/SKILL.md", "---\nna");
    assert_eq!(scanner.scan(), good);
    home.skill("a");
    assert_eq!(scanner.scan(), good);
    // What stays so is meant so.
    home.write("skills/a/SKILL.md", "text");
    assert_eq!(scanner.scan(), good);
    let bad = scanner.scan();
    assert_eq!((names(&bad).len(), told(&bad)[0].0), (0, "INVALID_SKILL"));
    assert_eq!(scanner.scan(), bad);
}

#[test]
fn what_has_changed_is_seen_and_the_rest_is_not_read_again() {
    let home = Home::new();
    let mut scanner = Scanner::new(home.workspace(), vec!["skills".to_owned()]);
    assert_eq!(scanner.scan(), Found::default());
    home.skill("a");
    home.skill("b");
    let first = scanner.scan();
    assert_eq!(names(&first), ["a", "b"]);
    // Read once more, in case it was written twice in one moment; then no more.
    let second = scanner.scan();
    assert_eq!(first, second);
    let third = scanner.scan();
    assert!(Arc::ptr_eq(&second.skills[0], &third.skills[0]));
    home.write("skills/a/SKILL.md", "---\ndescription: other\n---\n");
    let fourth = scanner.scan();
    assert_eq!(fourth.skills[0].description, "other");
    assert!(Arc::ptr_eq(&third.skills[1], &fourth.skills[1]));
    fs::remove_dir_all(home.path("skills/a")).unwrap();
    assert_eq!(names(&scanner.scan()), ["b"]);
    fs::rename(home.path("skills/b"), home.path("skills/c")).unwrap();
    assert_eq!(names(&scanner.scan()), ["c"]);
    fs::remove_dir_all(home.path("skills")).unwrap();
    assert_eq!(told(&scanner.scan())[0].0, "ROOT_MISSING");
}
