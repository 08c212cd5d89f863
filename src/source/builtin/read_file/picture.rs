//! An image of the workspace, as a model can take it.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::artifact::image::{Encoded, Form, Imported, import};
use crate::artifact::{ArtifactStore, Saved, StoreError};
use crate::tool::result::EXECUTION_ERROR;
use crate::tool::{Block, Failure, Image, ImageFile, SessionId, ToolResult};
use crate::workspace::{OpenFile, ResolvedPath, one_line};

/// The largest image that is read, in bytes.
const LARGEST: u64 = 64 << 20;
/// The folder of our own images in a workspace; what is in there is not copied again.
const OWN_FOLDER: &str = ".iris/image-cache";

/// Reads an image, keeps a copy, and makes it small enough for a model. (EX-L9.1)
pub(super) fn read(
    head: &[u8],
    file: OpenFile,
    path: &ResolvedPath,
    artifacts: &ArtifactStore,
    session: &SessionId,
) -> Result<ToolResult, Failure> {
    let failed = |why: &str| {
        let name = one_line(path.given());
        Failure::new(EXECUTION_ERROR, format!("cannot read the image {name}: {why}"))
    };
    let mut bytes = head.to_vec();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| failed(&error.to_string()))?;
    if bytes.len() as u64 > LARGEST {
        return Err(failed("it has more than 64 MiB"));
    }
    let imported = import(&bytes).map_err(|error| failed(&error.to_string()))?;
    let kept = keep(&bytes, &imported, path, artifacts, session)?;
    let (mime_type, shown) = match imported.model {
        Some(model) => (model.kind.mime_type(), model.bytes),
        None => (imported.original.kind.mime_type(), bytes),
    };
    let name = path.relative().file_name().map(|name| one_line(&name.to_string_lossy()));
    let image = Image {
        mime_type: mime_type.to_owned(),
        data: STANDARD.encode(shown).into(),
        name,
        files: Some(Arc::new(kept)),
    };
    let content = vec![Block::Text(image.entry()), Block::Image(image)];
    Ok(ToolResult { content, ..ToolResult::default() })
}

/// Keeps the image as it came and as a model gets it, and says where.
fn keep(
    bytes: &[u8],
    Imported { original, model }: &Imported,
    path: &ResolvedPath,
    artifacts: &ArtifactStore,
    session: &SessionId,
) -> Result<(ImageFile, ImageFile), StoreError> {
    let place =
        |saved: &Saved| artifacts.in_workspace(&saved.path).unwrap_or_else(|| saved.key.uri());
    let Form { kind, width, height } = *original;
    let file = |place| ImageFile { place, mime_type: kind.mime_type().to_owned(), width, height };
    if path.relative().starts_with(Path::new(OWN_FOLDER)) && model.is_none() {
        let there = file(path.relative().to_string_lossy().into_owned());
        return Ok((there.clone(), there));
    }
    let saved = artifacts.save_image(session.as_str(), kind.extension(), bytes)?;
    let came = file(place(&saved));
    let Some(Encoded { kind, width, height, bytes }) = model else {
        return Ok((came.clone(), came));
    };
    let saved = artifacts.save_model(session.as_str(), &saved.key, kind.extension(), bytes)?;
    let mime_type = kind.mime_type().to_owned();
    Ok((came, ImageFile { place: place(&saved), mime_type, width: *width, height: *height }))
}
