//! Which methods there are, for the requests that cannot be read as one of them.

use rmcp::ErrorData;
use rmcp::model::ErrorCode;

use crate::tool::Era;

/// Methods of both eras that are served.
const SERVED: [&str; 8] = [
    "completion/complete",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "tools/call",
    "tools/list",
];
/// Methods that only the older era has.
const SERVED_LEGACY: [&str; 5] =
    ["initialize", "logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"];
/// Methods that only the modern era has.
const SERVED_MODERN: [&str; 2] = ["server/discover", "subscriptions/listen"];

/// Methods that are served where there are skills.
const SERVED_WITH_SKILLS: [&str; 3] = ["resources/directory/read", "skills/get", "skills/list"];

/// Makes the error for a request that the library could not read.
pub(super) fn unread(method: &str, era: Era, has_skills: bool) -> ErrorData {
    let of_era: &[&str] = match era {
        Era::Legacy => &SERVED_LEGACY,
        Era::Modern => &SERVED_MODERN,
    };
    // A method that is served comes here when its parameters cannot be read.
    let of_skills = has_skills && SERVED_WITH_SKILLS.contains(&method);
    if SERVED.contains(&method) || of_era.contains(&method) || of_skills {
        let message = format!("the parameters of {method} are missing or of the wrong type");
        return ErrorData::invalid_params(message, None);
    }
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {method}"), None)
}
