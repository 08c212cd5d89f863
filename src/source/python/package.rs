//! The Python package `iris` that is shipped, for interpreters without Iris itself.

use std::collections::BTreeMap;

/// Its files, by their paths.
pub const PACKAGE: [(&str, &str); 5] = [
    ("iris/__init__.py", include_str!("iris/__init__.py")),
    ("iris/exceptions.py", include_str!("iris/exceptions.py")),
    ("iris/hooks.py", include_str!("iris/hooks.py")),
    ("iris/message.py", include_str!("iris/message.py")),
    ("iris/tools.py", include_str!("iris/tools.py")),
];

/// Returns its modules, by their names.
pub(super) fn modules() -> BTreeMap<String, &'static str> {
    let name = |path: &str| {
        let path = path.strip_suffix(".py").unwrap_or(path);
        path.strip_suffix("/__init__").unwrap_or(path).replace('/', ".")
    };
    PACKAGE.iter().map(|(path, source)| (name(path), *source)).collect()
}
