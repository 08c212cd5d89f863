//! The environment of a child: an allow-list, and how it travels through the guard; no I/O.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// What a program needs to behave as it does in its user's shell.
const SESSION: &[&str] =
    &["HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// Where launchers and runtimes find themselves: each is a path, none is a credential.
///
/// A launcher that was set up elsewhere than in its default folder (`npx` through nvm or Volta,
/// `python` through pyenv, `uvx` with its cache on another disk) fails or downloads everything
/// again without them; so does TLS behind a company's own certificate authority.
const TOOLCHAIN: &[&str] = &[
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "DENO_DIR",
    "FNM_DIR",
    "MISE_DATA_DIR",
    "NODE_EXTRA_CA_CERTS",
    "NODE_PATH",
    "NVM_DIR",
    "PIPX_HOME",
    "PNPM_HOME",
    "PYENV_ROOT",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "UV_CACHE_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "UV_TOOL_DIR",
    "VOLTA_HOME",
];

/// Families whose every member passes.
const PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Put before each name on the way through guard and trampoline.
///
/// So a child's `LD_PRELOAD` or `RUST_BACKTRACE` acts on the child and not on our own binary.
const TRAVEL: u8 = b'+';

/// Returns the part of `host` that a child may see: an allow-list, and the names in `inherit`.
///
/// The list is `HOME`, `LANG`, `LANGUAGE`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `TMPDIR`, `TZ`,
/// `USER`, everything that begins with `LC_` or `XDG_`, and the folders in which `npx`, `uvx`,
/// `node` and `python` look for themselves. Proxy settings are not in it, since they may hold a
/// password, nor is anything of ours (`IRIS_*`): those pass only when `inherit` names them.
pub fn base_environment(
    host: &BTreeMap<String, String>,
    inherit: &[String],
) -> BTreeMap<String, String> {
    let allowed = |name: &str| {
        SESSION.contains(&name)
            || TOOLCHAIN.contains(&name)
            || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || inherit.iter().any(|declared| declared == name)
    };
    host.iter()
        .filter(|(name, _)| allowed(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Returns the first name or value that no process can be given.
pub(super) fn impossible(env: &BTreeMap<String, String>) -> Option<&str> {
    env.iter()
        .find(|(name, value)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0'))
        .map(|(name, _)| name.as_str())
}

/// Makes the environment of a guard out of its child's.
pub(super) fn pack(env: &BTreeMap<String, String>) -> impl Iterator<Item = (OsString, &OsStr)> {
    env.iter().map(|(name, value)| {
        let mut packed = vec![TRAVEL];
        packed.extend_from_slice(name.as_bytes());
        (OsString::from_vec(packed), OsStr::new(value))
    })
}

/// Makes `NAME=value` lines for `exec` out of what [`pack`] made.
pub(super) fn unpack(
    packed: impl IntoIterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = CString> {
    packed.into_iter().filter_map(|(name, value)| {
        let mut line = name.as_bytes().strip_prefix(&[TRAVEL])?.to_vec();
        line.push(b'=');
        line.extend_from_slice(value.as_bytes());
        CString::new(line).ok()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::OsString;

    use super::{base_environment, impossible, pack, unpack};

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn secrets_stay_here() {
        let host = map(&[
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("HTTPS_PROXY", "http://me:password@proxy"),
            ("IRIS_MCP_TOKEN", "s"),
            ("HOME", "/home/me"),
            ("LC_ALL", "C"),
            ("PATH", "/bin"),
            ("PYENV_ROOT", "/opt/pyenv"),
            ("XDG_CACHE_HOME", "/cache"),
        ]);
        let names: Vec<_> = base_environment(&host, &[]).into_keys().collect();
        assert_eq!(names, ["HOME", "LC_ALL", "PATH", "PYENV_ROOT", "XDG_CACHE_HOME"]);
    }

    #[test]
    fn a_declared_name_passes_and_an_absent_one_is_nothing() {
        let host = map(&[("IRIS_MCP_TOKEN", "s"), ("IRIS_MCP_TOKEN_FILE", "f")]);
        let inherit = ["IRIS_MCP_TOKEN".to_owned(), "ABSENT".to_owned()];
        assert_eq!(base_environment(&host, &inherit), map(&[("IRIS_MCP_TOKEN", "s")]));
    }

    #[test]
    fn names_and_values_that_cannot_be_passed_are_found() {
        assert_eq!(impossible(&map(&[("A", "=b")])), None);
        assert_eq!(impossible(&map(&[("", "b")])), Some(""));
        assert_eq!(impossible(&map(&[("A=", "b")])), Some("A="));
        assert_eq!(impossible(&map(&[("A", "b\0")])), Some("A"));
    }

    #[test]
    fn the_environment_survives_the_journey_and_nothing_is_added() {
        let env = map(&[("LD_PRELOAD", "/x.so"), ("A", "b=c\nd"), ("EMPTY", "")]);
        let mut packed: Vec<(OsString, OsString)> =
            pack(&env).map(|(name, value)| (name, value.to_owned())).collect();
        assert!(packed.iter().all(|(name, _)| name.as_encoded_bytes()[0] == b'+'));
        packed.push(("ADDED".into(), "on the way".into()));
        let lines: Vec<_> = unpack(packed).map(|line| line.into_string().unwrap()).collect();
        assert_eq!(lines, ["A=b=c\nd", "EMPTY=", "LD_PRELOAD=/x.so"]);
    }
}
