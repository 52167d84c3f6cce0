//! Nothing of a file lies elsewhere: HDF5 follows links and lists of files to wherever they lead, to a pipe that never
//! ends even, when it opens or reads what is behind them.

pub(crate) use hdf5::plist::dataset_create::Layout as Storage;
use hdf5::{IndexType, IterationOrder, LinkType};

use crate::error::Result;
use crate::stored_file::StoredFile;

/// More links than any file of ours has in one group.
const LINKS_MAX: usize = 32;

/// Refuses links that lead elsewhere, to another file even, before any of them is followed.
pub(crate) fn check_links(library: &hdf5::File, file: &StoredFile) -> Result<()> {
    let mut groups = Vec::new();
    check_group(library, "", file, &mut groups)?;
    // Groups in groups are no columns, and are not looked into.
    groups.iter().try_for_each(|(name, group)| check_group(group, &format!("{name}/"), file, &mut Vec::new()))
}

/// Checks the links of a group, and gathers the groups among what they lead to.
fn check_group(
    group: &hdf5::Group,
    prefix: &str,
    file: &StoredFile,
    groups: &mut Vec<(String, hdf5::Group)>,
) -> Result<()> {
    let mut links = Vec::new();
    let visited = group.find_link(IndexType::Name, IterationOrder::Native, |name, link| {
        links.push((format!("{prefix}{name}"), link.link_type));
        Ok((links.len() > LINKS_MAX).then_some(()))
    });
    if !matches!(visited, Ok(None)) {
        return Err(file.damaged("the list of datasets"));
    }
    for (name, kind) in links {
        let found = match kind {
            LinkType::Hard => {
                let inner = name.strip_prefix(prefix).unwrap_or(&name);
                groups.extend(group.group(inner).ok().map(|inner| (name.clone(), inner)));
                continue;
            }
            LinkType::Soft => "a symbolic link",
            LinkType::External => "a link to another file",
        };
        return Err(file.unexpected(&name, found, "a dataset or a group of this file"));
    }
    Ok(())
}

/// Refuses a dataset whose elements lie elsewhere, in other files even, before it is asked for anything.
pub(crate) fn check_stored_as(
    storage: Storage,
    dataset: &hdf5::Dataset,
    name: &str,
    file: &StoredFile,
) -> Result<()> {
    let created = dataset.create_plist().map_err(|_| file.damaged(&format!("the layout of {name}")))?;
    if created.get_layout().is_ok_and(|found| found == storage)
        && created.get_external().is_ok_and(|files| files.is_empty())
    {
        return Ok(());
    }
    Err(file.damaged(&format!("the layout of {name}")))
}
