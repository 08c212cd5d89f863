//! JSON kept as it is written, without all of it in memory.

use std::io::{self, BufWriter, Write};

use serde::Serialize;

use super::{ArtifactStore, CHUNK, Key, Owner, Saved, StoreError};
use crate::tool::printed::spaced_to;

impl ArtifactStore {
    /// Keeps JSON; blocks.
    pub fn save_json(
        &self,
        owner: Owner<'_>,
        suffix: &str,
        json: &impl Serialize,
    ) -> Result<Saved, StoreError> {
        let key = Key::result(owner.call_id, suffix);
        // To know how much room to make; it takes no memory, and much less time than writing.
        let mut size = Count(0);
        let measured = spaced_to(&mut size, json);
        self.write(owner.session, key, size.0, |file| {
            measured?;
            let mut file =
                BufWriter::with_capacity(CHUNK.min(usize::try_from(size.0).unwrap_or(CHUNK)), file);
            spaced_to(&mut file, json)?;
            file.flush()
        })
    }
}

/// Counts what is written to it.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
