//! What changed in a text, as a unified diff.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;
/// How long to look for the shortest diff; after that a longer one will do.
const PATIENCE: Duration = Duration::from_millis(500);

/// Returns the diff between two states of a file; nothing if they are the same.
pub(super) fn unified(name: &str, before: &str, after: &str) -> String {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let diff = TextDiff::configure().timeout(PATIENCE).diff_slices(&old, &new);
    let mut patch = String::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        if patch.is_empty() {
            patch = format!("--- a/{name}\n+++ b/{name}\n");
        }
        patch.push_str(&hunk.header().to_string());
        patch.push('\n');
        for change in hunk.iter_changes() {
            patch.push(match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            });
            patch.push_str(change.value());
            if !change.value().ends_with('\n') {
                patch.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[track_caller]
    fn check(before: &str, after: &str, hunks: &str) {
        let expected = if hunks.is_empty() {
            String::new()
        } else {
            format!("--- a/n.txt\n+++ b/n.txt\n{hunks}")
        };
        assert_eq!(unified("n.txt", before, after), expected, "{before:?} {after:?}");
    }

    #[test]
    fn a_diff_has_three_lines_around_and_marks_a_missing_line_end() {
        check("same", "same", "");
        check("", "", "");
        check("hello old\n", "hello new\n", "@@ -1 +1 @@\n-hello old\n+hello new\n");
        check(
            "a\nb\nc",
            "a\nb\nd",
            "@@ -1,3 +1,3 @@\n a\n b\n-c\n\\ No newline at end of file\n+d\n\\ No newline at end of file\n",
        );
        check("", "a\n", "@@ -0,0 +1 @@\n+a\n");
        check("a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n");
        check("a\n", "a", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n");
        check(
            "a\rb",
            "a\r",
            "@@ -1 +1 @@\n-a\rb\n\\ No newline at end of file\n+a\r\n\\ No newline at end of file\n",
        );
        check(
            "1\n2\n3\n4\nx\n5\n6\n7\n8\n",
            "1\n2\n3\n4\n5\n6\n7\n8\n",
            "@@ -2,7 +2,6 @@\n 2\n 3\n 4\n-x\n 5\n 6\n 7\n",
        );
    }

    #[test]
    fn two_changes_far_apart_are_two_hunks() {
        let before: String =
            (1..=20).flat_map(|line| [line.to_string(), "\n".to_owned()]).collect();
        let after = before.replacen("1\n", "one\n", 1).replace("20\n", "twenty\n");
        check(
            &before,
            &after,
            "@@ -1,4 +1,4 @@\n-1\n+one\n 2\n 3\n 4\n@@ -17,4 +17,4 @@\n 17\n 18\n 19\n-20\n+twenty\n",
        );
    }
}
