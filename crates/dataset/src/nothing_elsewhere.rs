//! Refuses files that refer to other files. When HDF5 opens or reads an object, it follows links and lists of
//! external files to any path, even to a pipe that never ends.

pub(crate) use hdf5::plist::dataset_create::Layout as Storage;
use hdf5::{IndexType, IterationOrder, LinkType};

use crate::error::Result;
use crate::stored_file::StoredFile;

/// More links than any group of this project's files has.
const LINKS_MAX: usize = 32;

/// Refuses links to other files or objects, before any of them is followed.
pub(crate) fn check_links(library: &hdf5::File, file: &StoredFile) -> Result<()> {
    for name in checked_links(library, "", file)? {
        // Groups within groups cannot be columns, so they are not examined.
        if let Ok(group) = library.group(&name) {
            checked_links(&group, &format!("{name}/"), file)?;
        }
    }
    Ok(())
}

/// The names of a group's links, all of which point to objects of this file.
fn checked_links(group: &hdf5::Group, prefix: &str, file: &StoredFile) -> Result<Vec<String>> {
    let mut links = Vec::new();
    let visited = group.find_link(IndexType::Name, IterationOrder::Native, |name, link| {
        links.push((format!("{prefix}{name}"), link.link_type));
        Ok((links.len() > LINKS_MAX).then_some(()))
    });
    if !matches!(visited, Ok(None)) {
        return Err(file.damaged("the list of datasets"));
    }
    let lead_here = links.into_iter().map(|(name, kind)| {
        let found = match kind {
            LinkType::Hard => return Ok(name),
            LinkType::Soft => "a symbolic link",
            LinkType::External => "a link to another file",
        };
        Err(file.unexpected(&name.escape_debug().to_string(), found, "a dataset or a group of this file"))
    });
    lead_here.collect()
}

/// Refuses a dataset whose elements are stored elsewhere, such as in other files, before it is used.
pub(crate) fn check_stored_as(
    storage: Storage,
    dataset: &hdf5::Dataset,
    name: &str,
    file: &StoredFile,
) -> Result<()> {
    let lies_here = dataset
        .create_plist()
        .and_then(|created| Ok(created.get_layout()? == storage && created.get_external()?.is_empty()));
    if lies_here.unwrap_or(false) { Ok(()) } else { Err(file.damaged(&format!("the layout of {name}"))) }
}
