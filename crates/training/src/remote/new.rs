//! New objects and folders in S3, whose names are checked before the work.

use std::path::Path;

use program::location::S3Url;
use store::mirror::{Leftovers, persistently};
use store::{Key, ObjectContent, Put, S3Options, Store};

use super::layout::{self, PrefixListing};
use crate::error::Result;

/// An unused prefix, or one with a part of the same folder, which an interrupted command has left.
pub struct NewFolder {
    store: Store,
}

impl NewFolder {
    /// Refuses a prefix that has a complete folder or a training.
    pub fn at(url: &S3Url, s3: &S3Options) -> Result<Self> {
        let store = Store::open_with(&url.to_string(), s3)?;
        store.probe()?;
        PrefixListing::of(&store)?.check_new_folder(&store)?;
        Ok(Self { store })
    }

    /// Puts the files of a folder; its list of digests is the last.
    pub fn put(&self, folder: &Path) -> Result<()> {
        let bundle = layout::folder(folder, "")?;
        Ok(persistently(|| store::mirror::put(&self.store, &bundle, Leftovers::Refuse, || Ok(())))?)
    }
}

/// An unused name.
pub struct NewObject {
    store: Store,
    key: Key,
}

impl NewObject {
    /// Refuses a name that is used.
    pub fn at(url: &S3Url, s3: &S3Options) -> Result<Self> {
        let (store, key) = Store::of_object(url, s3)?;
        let new = Self { store, key };
        match new.store.head(&new.key)? {
            None => Ok(new),
            Some(_) => Err(new.occupied().into()),
        }
    }

    /// Puts the object.
    pub fn put(&self, content: &[u8]) -> Result<()> {
        match self.store.put_if_absent(&self.key, ObjectContent::Bytes(content))? {
            Put::Stored(_) => Ok(()),
            Put::AlreadyThere => Err(self.occupied().into()),
        }
    }

    fn occupied(&self) -> runs::Error {
        let url = format!("{}/{}", self.store.url(), self.key);
        let remedy = "nothing in S3 is replaced: choose another --out";
        runs::Error::occupied(url.as_ref(), "an object", "a new name", remedy)
    }
}
