//! What models are told of the skills there are: in a tool's description, and in instructions.

use std::sync::Arc;

use super::LOAD_SKILL;
use super::scan::Skill;

/// The most characters of skills in the tool's description.
const DESCRIPTION_CHARS: usize = 20_000;
/// The most characters of skills in instructions, which they share with upstream servers.
const INSTRUCTIONS_CHARS: usize = 1_000;

const PURPOSE: &str = "\
Gives the whole text of a skill: instructions for one kind of task. Load the skill that fits a task \
before you begin with it, and follow it.";

/// Describes the tool, with all skills that there is room for.
pub(super) fn description(skills: &[Arc<Skill>], roots: &[String]) -> String {
    let (entries, more) = entries(skills, DESCRIPTION_CHARS);
    let more = match more {
        0 => String::new(),
        more => format!("\nand {more} more; the error about a name that is none has all names"),
    };
    let roots = roots.join(", ");
    format!(
        "{PURPOSE} Other files that it names are in its folder below {roots}.\n\nSkills:\n{entries}{more}"
    )
}

/// Makes the part of the server's instructions that is about skills.
pub(super) fn instructions(skills: &[Arc<Skill>]) -> Option<String> {
    if skills.is_empty() {
        return None;
    }
    let (entries, more) = entries(skills, INSTRUCTIONS_CHARS);
    let more = match (more, entries.is_empty()) {
        (0, _) => String::new(),
        (more, true) => format!("{more} of them, which the description of {LOAD_SKILL} names"),
        (more, false) => format!("\nand {more} more, which the description of {LOAD_SKILL} names"),
    };
    Some(format!("call {LOAD_SKILL} before a task that one of these is for:\n{entries}{more}"))
}

/// Writes skills one a line, as many whole ones as there is room for, and says how many are left.
fn entries(skills: &[Arc<Skill>], most: usize) -> (String, usize) {
    let (mut text, mut chars) = (String::new(), 0);
    for (index, skill) in skills.iter().enumerate() {
        let words: Vec<&str> = skill.description.split_whitespace().collect();
        let line = if index == 0 { "" } else { "\n" };
        let entry = format!("{line}- {}: {}", skill.name, words.join(" "));
        chars += entry.chars().count();
        if chars > most {
            return (text, skills.len() - index);
        }
        text.push_str(&entry);
    }
    (text, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::skill::fixture;

    fn skills(descriptions: &[String]) -> Vec<Arc<Skill>> {
        let numbered = descriptions.iter().enumerate();
        numbered.map(|(index, text)| fixture::skill(&format!("s{index}"), text)).collect()
    }

    #[test]
    fn skills_are_lines() {
        let skills = skills(&["one\n  two".to_owned(), "three".to_owned()]);
        let text = description(&skills, &[".agents/skills".to_owned()]);
        assert!(
            text.ends_with("below .agents/skills.\n\nSkills:\n- s0: one two\n- s1: three"),
            "{text}"
        );
        let text = instructions(&skills).unwrap();
        assert!(text.ends_with(":\n- s0: one two\n- s1: three"), "{text}");
        assert_eq!(instructions(&[]), None);
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let skills = skills(&vec!["d".repeat(300); 100]);
        let text = instructions(&skills).unwrap();
        assert!(text.contains("\n- s2: ") && !text.contains("- s3: "), "{text}");
        assert!(text.ends_with("and 97 more, which the description of load_skill names"), "{text}");
        assert!(text.chars().count() < 1_200);
        let text = description(&skills, &[]);
        assert!(text.contains("and 36 more; ") && text.chars().count() < 21_000);
        let long = instructions(&self::skills(&["d".repeat(1024)])).unwrap();
        assert!(long.ends_with("1 of them, which the description of load_skill names"), "{long}");
    }
}
