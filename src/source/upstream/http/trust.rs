//! Whom we trust over TLS: what browsers trust, and the certificate authorities of this machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::{ClientConfig, RootCertStore};
use rustls_native_certs::{CertificateResult, load_certs_from_paths, load_native_certs};

/// A file of certificates, instead of those of the system.
const FILE: &str = "SSL_CERT_FILE";
/// Folders of them, likewise.
const FOLDERS: &str = "SSL_CERT_DIR";

/// What is trusted; it is read when the first connection needs it, and then kept.
#[derive(Debug, Default)]
pub(super) struct Trust {
    config: OnceLock<ClientConfig>,
}

impl Trust {
    /// Returns how to speak TLS.
    pub(super) fn config(
        &self,
        environment: &BTreeMap<String, String>,
    ) -> Result<ClientConfig, String> {
        if let Some(config) = self.config.get() {
            return Ok(config.clone());
        }
        let config = config(roots(environment))?;
        Ok(self.config.get_or_init(|| config).clone())
    }
}

/// Returns how to speak TLS with nobody, for what is never spoken to so.
pub(super) fn nobody() -> Result<ClientConfig, String> {
    config(RootCertStore::empty())
}

/// Speaks with cryptography that needs no more than a C compiler.
fn config(roots: RootCertStore) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn roots(environment: &BTreeMap<String, String>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let CertificateResult { certs, errors, .. } = native(environment);
    let (added, ignored) = roots.add_parsable_certificates(certs);
    // Where there is no store at all, what browsers trust is enough for most.
    for error in &errors {
        tracing::warn!(%error, "some certificate authorities could not be read");
    }
    tracing::debug!(added, ignored, "read the certificate authorities of this machine");
    roots
}

fn native(environment: &BTreeMap<String, String>) -> CertificateResult {
    let named = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let (file, folders) = (named(FILE), named(FOLDERS));
    if file.is_none() && folders.is_none() {
        return load_native_certs();
    }
    let mut found = load_certs_from_paths(file.map(Path::new), None);
    for folder in folders.iter().flat_map(|folders| std::env::split_paths(folders.as_str())) {
        let more = load_certs_from_paths(None, Some(&folder));
        found.certs.extend(more.certs);
        found.errors.extend(more.errors);
    }
    found
}
