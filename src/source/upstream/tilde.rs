//! `~`, which a shell would make the home folder and we do not: what is said of it.

use super::config::Stdio;

/// What to do about it.
pub(super) const CURE: &str = "is not expanded: write the whole path, or `${HOME}`";

/// Says of a server that cannot be started or has ended which of its fields have a `~`.
///
/// Not of one that works: some programs expand it in their arguments by themselves.
pub(super) fn remark(stdio: &Stdio) -> Option<String> {
    let single = [("command", Some(&stdio.command)), ("cwd", stdio.cwd.as_ref())];
    let single = single.into_iter().filter_map(|(field, text)| Some((field.to_owned(), text?)));
    let args = stdio.args.iter().enumerate();
    let args = args.map(|(number, text)| (format!("args[{number}]"), text));
    let fields: Vec<String> = single
        .chain(args)
        .filter(|(_, text)| begins_at_home(text))
        .map(|(field, _)| format!("`{field}`"))
        .collect();
    (!fields.is_empty()).then(|| format!("; the `~` in {} {CURE}", fields.join(" and ")))
}

/// Says whether a text is a path that a shell would begin in a home folder.
pub(super) fn begins_at_home(text: &str) -> bool {
    // Also of an option: `--root=~/files`.
    let path = text.split_once('=').map_or(text, |(_, value)| value);
    [text, path].into_iter().any(|path| path == "~" || path.starts_with("~/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_with_a_path_from_home_is_named() {
        let stdio = |command: &str, args: &[&str], cwd: Option<&str>| Stdio {
            command: command.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            cwd: cwd.map(str::to_owned),
            env: Vec::new(),
            env_vars: Vec::new(),
            env_file: None,
        };
        let of = |command, args, cwd| remark(&stdio(command, args, cwd));
        assert_eq!(of("npx", &["a~", "/~x"], Some("/a/~")), None);
        assert_eq!(
            of("~/bin/x", &["-v", "~/a", "--root=~/b"], Some("~")),
            Some(format!("; the `~` in `command` and `cwd` and `args[1]` and `args[2]` {CURE}"))
        );
    }
}
