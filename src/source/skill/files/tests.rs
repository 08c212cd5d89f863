//! The files of a skill as resources.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use super::*;
use crate::source::skill::fixture::Home;

fn found(home: &Home) -> Result<Vec<String>, Unpublished> {
    let stock = home.stock();
    let skill = stock.get("a").unwrap();
    of(&stock, &skill).map(|files| files.into_iter().map(|file| file.uri).collect())
}

fn listing(home: &Home, uri: &str) -> Option<Vec<Value>> {
    let stock = home.stock();
    let skill = stock.get("a").unwrap();
    directory(&of(&stock, &skill).unwrap(), &skill, uri)
}

#[test]
fn every_file_is_there_once_but_hidden_ones_and_what_leads_out() {
    let home = Home::new();
    home.skill("a");
    home.skill("b");
    home.write("skills/a/sub/b c.md", "x");
    home.write("skills/a/sub/ü", "x");
    home.write("skills/a/sub/deep/%41", "x");
    home.write("skills/a/.env", "secret");
    home.write("skills/a/.git/config", "secret");
    home.write("outside.md", "x");
    fs::write(home.path("skills/a").join(OsStr::from_bytes(b"\xff")), "x").unwrap();
    symlink("sub/deep/%41", home.path("skills/a/inside")).unwrap();
    symlink(home.path("outside.md"), home.path("skills/a/outside")).unwrap();
    symlink("../b/SKILL.md", home.path("skills/a/other")).unwrap();
    symlink("/etc", home.path("skills/a/etc")).unwrap();
    symlink("sub", home.path("skills/a/folder")).unwrap();
    nix::unistd::mkfifo(&home.path("skills/a/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let expected = ["%FF", "SKILL.md", "inside", "sub/%C3%BC", "sub/b%20c.md", "sub/deep/%2541"];
    assert_eq!(found(&home).unwrap(), expected.map(|tail| format!("skill://a/{tail}")));
}

#[test]
fn what_is_hidden_is_not_published_under_another_name() {
    let home = Home::new();
    home.skill("a");
    home.write("skills/a/.env", "secret");
    home.write("skills/a/.git/config", "secret");
    home.write("skills/a/.git/deep/er", "secret");
    symlink(".env", home.path("skills/a/env.txt")).unwrap();
    symlink(".git/config", home.path("skills/a/cfg")).unwrap();
    symlink(".git/deep", home.path("skills/a/deep")).unwrap();
    symlink("deep/er", home.path("skills/a/deeper")).unwrap();
    assert_eq!(found(&home).unwrap(), ["skill://a/SKILL.md"]);
    // The way a volume of Kubernetes is mounted, which exchanges all of it at once.
    home.write("skills/a/..2026/ref.md", "x");
    symlink("..2026", home.path("skills/a/..data")).unwrap();
    symlink("..data/ref.md", home.path("skills/a/ref.md")).unwrap();
    assert_eq!(found(&home).unwrap(), ["skill://a/SKILL.md", "skill://a/ref.md"]);
}

/// Does something as somebody whom modes of files keep out.
fn as_nobody<T>(home: &Home, work: impl FnOnce() -> T) -> T {
    use nix::unistd::{Uid, setfsuid};
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(home.path(""), mode).unwrap();
    // It is that of this thread alone.
    let before = setfsuid(Uid::from_raw(65_534));
    let done = work();
    setfsuid(before);
    done
}

fn lock(home: &Home, name: &str) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    fs::set_permissions(home.path(name), mode).unwrap();
}

#[test]
fn what_cannot_be_read_keeps_a_skill_from_being_published_unless_it_is_hidden() {
    let home = Home::new();
    home.skill("a");
    home.write("skills/a/.git/config", "x");
    home.write("skills/a/.env", "x");
    home.write("skills/a/sub/x", "x");
    symlink("sub/none", home.path("skills/a/dangling")).unwrap();
    symlink("loop", home.path("skills/a/loop")).unwrap();
    lock(&home, "skills/a/.git");
    lock(&home, "skills/a/.env");
    let stock = home.stock();
    let skill = stock.get("a").unwrap();
    let look = || of(&stock, &skill).map(|files| files.len());
    assert_eq!(as_nobody(&home, look), Ok(2));
    lock(&home, "skills/a/sub/x");
    let locked = Err(Unpublished::Unreadable("sub/x".to_owned()));
    assert_eq!(as_nobody(&home, look), locked);
    lock(&home, "skills/a/sub");
    let locked = Err(Unpublished::Unreadable("sub".to_owned()));
    assert_eq!(as_nobody(&home, look), locked);
}

#[test]
fn a_hidden_folder_takes_nothing_of_the_bounds() {
    let home = Home::new();
    home.skill("a");
    for number in 0..=MOST_STEPS {
        let name = format!("skills/a/.git/{number}");
        if number == 0 {
            home.write(&name, "");
        } else {
            fs::File::create(home.path(&name)).unwrap();
        }
    }
    assert_eq!(found(&home).unwrap(), ["skill://a/SKILL.md"]);
}

#[test]
fn a_link_that_is_put_in_the_place_of_a_file_is_not_followed() {
    let home = Home::new();
    home.skill("a");
    home.write("skills/a/b", "fine");
    home.write("skills/a/sub/b", "fine");
    home.write("secret.txt", "secret");
    home.write("elsewhere/b", "secret");
    let stock = home.stock();
    let skill = stock.get("a").unwrap();
    let files = of(&stock, &skill).unwrap();
    let text = scan::file_of(stock.workspace(), &skill).unwrap();
    fs::remove_file(home.path("skills/a/b")).unwrap();
    symlink("../../secret.txt", home.path("skills/a/b")).unwrap();
    fs::remove_dir_all(home.path("skills/a/sub")).unwrap();
    symlink("../../elsewhere", home.path("skills/a/sub")).unwrap();
    fs::remove_file(home.path("skills/a/SKILL.md")).unwrap();
    symlink("../../secret.txt", home.path("skills/a/SKILL.md")).unwrap();
    assert_eq!(files.len(), 3);
    for file in &files {
        contents(&stock, file).unwrap_err();
        reckon(&stock, file).unwrap_err();
    }
    text::read(stock.workspace(), &text).unwrap_err();
}

#[test]
fn a_folder_lists_its_children() {
    let home = Home::new();
    home.skill("a");
    home.write("skills/a/sub dir/one.py", "x = 1\n");
    home.write("skills/a/sub dir/two/three.png", [0, 1]);
    let top = json!([
        {"uri": "skill://a/SKILL.md", "name": "a", "description": "does a", "mimeType": "text/markdown"},
        {"uri": "skill://a/sub%20dir", "name": "sub dir", "mimeType": "inode/directory"},
    ]);
    assert_eq!(listing(&home, "skill://a").map(Value::from), Some(top.clone()));
    assert_eq!(listing(&home, "skill://a/").map(Value::from), Some(top));
    let sub = listing(&home, "skill://a/sub%20dir").map(Value::from);
    assert_eq!(
        sub,
        Some(json!([
            {"uri": "skill://a/sub%20dir/one.py", "name": "one.py", "mimeType": "text/plain", "size": 6},
            {"uri": "skill://a/sub%20dir/two", "name": "two", "mimeType": "inode/directory"},
        ]))
    );
    for none in [
        "skill://a/SKILL.md",
        "skill://a/sub",
        "skill://a/sub dir",
        "skill://a/sub%20dir/one.py",
        "skill://b",
        "skill://a/..",
        "skill://",
        "",
    ] {
        assert_eq!(listing(&home, none), None, "{none}");
    }
}

#[test]
fn an_entry_has_what_the_text_says_and_the_digest_of_every_file() {
    let home = Home::new();
    home.write(
        "skills/a/SKILL.md",
        "---\nname: a\ndescription: d\nmetadata: {version: 1}\n---\nbody",
    );
    home.write("skills/a/b", "abc");
    let stock = home.stock();
    let skill = stock.get("a").unwrap();
    let made = entry(&stock, &skill).unwrap();
    assert_eq!(made["uri"], "skill://a/SKILL.md");
    assert_eq!(
        made["frontmatter"],
        json!({"name": "a", "description": "d", "metadata": {"version": 1}})
    );
    let abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(made["resources"][1], json!({"uri": "skill://a/b", "digest": abc, "size": 3}));
    // It is that of now, not of when it was found.
    home.write("skills/a/b", "abcd");
    assert_eq!(entry(&stock, &skill).unwrap()["resources"][1]["size"], 4);
    let text = "---\nname: a\ndescription: other\n---\n";
    home.write("skills/a/SKILL.md", text);
    let made = entry(&stock, &skill).unwrap();
    assert_eq!(made["frontmatter"]["description"], "other");
    assert_eq!(made["resources"][0]["digest"], text::digest(text.as_bytes()));
    home.write("skills/a/SKILL.md", "text");
    entry(&stock, &skill).unwrap_err();
}

#[test]
fn a_digest_is_reckoned_anew_when_a_file_changes_and_else_remembered() {
    let home = Home::new();
    home.skill("a");
    home.write("skills/a/b", "1");
    let stock = home.stock();
    let skill = stock.get("a").unwrap();
    let digest = || entry(&stock, &skill).unwrap()["resources"][1]["digest"].clone();
    let first = digest();
    for _ in 0..3 {
        assert_eq!(digest(), first);
    }
    let file = &of(&stock, &skill).unwrap()[1];
    assert!(stock.reckoned(file.path.absolute(), file.stamp).is_some());
    home.write("skills/a/b", "2");
    assert_ne!(digest(), first);
}

#[test]
fn a_file_is_read_as_what_it_is() {
    let home = Home::new();
    home.skill("a");
    home.write("skills/a/b.json", "{}");
    home.write("skills/a/c.png", [0x89, b'P']);
    home.write("skills/a/empty", "");
    let stock = home.stock();
    let files = of(&stock, &stock.get("a").unwrap()).unwrap();
    let read: Vec<Value> =
        files.iter().map(|file| contents(&stock, file).unwrap()["contents"][0].take()).collect();
    assert_eq!(read[0]["mimeType"], "text/markdown");
    assert_eq!(read[0]["text"], "---\nname: a\ndescription: does a\n---\nHow to a.\n");
    assert_eq!(
        read[1],
        json!({"uri": "skill://a/b.json", "mimeType": "application/json", "text": "{}"})
    );
    assert_eq!(read[2], json!({"uri": "skill://a/c.png", "mimeType": "image/png", "blob": "iVA="}));
    assert_eq!(
        read[3],
        json!({"uri": "skill://a/empty", "mimeType": "application/octet-stream", "text": ""})
    );
}

#[test]
fn what_is_too_much_or_has_no_name_is_not_published() {
    let home = Home::new();
    home.write("skills/a/SKILL.md", "---\ndescription: d\n---\n");
    assert_eq!(found(&home).unwrap_err(), Unpublished::Unnamed("a".to_owned()));
    home.write("skills/a/SKILL.md", "---\nname: b\ndescription: d\n---\n");
    assert_eq!(found(&home).unwrap_err(), Unpublished::Unnamed("a".to_owned()));
    home.skill("a");
    for number in 1..MOST_FILES {
        home.write(&format!("skills/a/f{number}"), "");
    }
    assert_eq!(found(&home).unwrap().len(), MOST_FILES);
    home.write("skills/a/one-more", "");
    assert_eq!(found(&home).unwrap_err(), Unpublished::Files);
    let home = Home::new();
    home.skill("a");
    let large = fs::File::create(home.path("skills/a/large")).unwrap();
    let text = fs::metadata(home.path("skills/a/SKILL.md")).unwrap().len();
    large.set_len(MOST_BYTES - text).unwrap();
    assert_eq!(found(&home).unwrap().len(), 2);
    large.set_len(MOST_BYTES - text + 1).unwrap();
    assert_eq!(found(&home).unwrap_err(), Unpublished::Bytes);
    let (home, long) = (Home::new(), "x".repeat(65));
    home.skill(&long);
    let stock = home.stock();
    assert_eq!(named(&stock.get(&long).unwrap()), Err(Unpublished::LongName));
}
