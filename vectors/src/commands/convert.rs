//! `vectors convert`.

use embeddings::files::{Format, read_with_outputs, write};
use training::out::check_place;
use training::tell::tell;
use training::{Error, Result};

use crate::arguments::Convert;

/// Writes vectors in the format that the extension of the file selects.
pub(super) fn convert(arguments: &Convert) -> Result<()> {
    let out = &arguments.out;
    let Some(format) = Format::of_name(out) else {
        return Err(Error::setting(
            "--out",
            out.display(),
            format!("a file with the extension {}", Format::EXTENSIONS),
        ));
    };
    check_place(out)?;
    let (embedding, outputs) = read_with_outputs(&arguments.vectors.model)?;
    write(out, format, &embedding, outputs.as_deref())?;
    tell(&format!("wrote {}", out.display()));
    Ok(())
}
