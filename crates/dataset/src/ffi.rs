//! The four calls of the HDF5 library that have no safe wrapper: write an encoded chunk, write and read the
//! bytes of an attribute, and return the descriptor of an open file.
//!
//! This is the only module of the crate with `unsafe`. It is independent of file formats.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::ptr;

use hdf5::{Attribute, Dataset, File};
use hdf5_sys::h5a::{H5Aread, H5Awrite};
use hdf5_sys::h5d::H5Dwrite_chunk;
use hdf5_sys::h5f::H5Fget_vfd_handle;
use hdf5_sys::h5p::H5P_DEFAULT;

/// Writes one chunk to which all filters have been applied. `offset` is the chunk's first element in each
/// dimension.
pub(crate) fn write_chunk(dataset: &Dataset, offset: &[u64], stored: &[u8]) -> hdf5::Result<()> {
    assert_eq!(offset.len(), dataset.ndim(), "one offset for each dimension");
    // SAFETY: the dataset's handle is open while it is borrowed; `offset` has as many entries as the dataset has
    // dimensions; the library reads `stored.len()` bytes and keeps no pointer; the lock of the library is held.
    let status = hdf5::sync::sync(|| unsafe {
        H5Dwrite_chunk(dataset.id(), H5P_DEFAULT, 0, offset.as_ptr(), stored.len(), stored.as_ptr().cast())
    });
    hdf5::h5check(status).map(|_| ())
}

/// Writes the value of an attribute from its bytes in memory.
pub(crate) fn write_attribute(attribute: &Attribute, value: &[u8]) -> hdf5::Result<()> {
    let dtype = attribute.dtype()?;
    assert_eq!(value.len(), dtype.size() * attribute.size(), "a value of the attribute's size");
    // SAFETY: the handles are open while they are borrowed; the memory type is the attribute's own, so the library
    // reads exactly the bytes counted above; the lock of the library is held.
    let status = hdf5::sync::sync(|| unsafe { H5Awrite(attribute.id(), dtype.id(), value.as_ptr().cast()) });
    hdf5::h5check(status).map(|_| ())
}

/// Reads the value of an attribute as bytes. The caller has checked that it has no references or
/// variable-length parts, and that its size is within limits.
pub(crate) fn read_attribute(attribute: &Attribute) -> hdf5::Result<Vec<u8>> {
    let dtype = attribute.dtype()?;
    let mut value = vec![0u8; dtype.size() * attribute.size()];
    // SAFETY: the handles are open while they are borrowed; the memory type is the attribute's own, so the library
    // writes exactly the bytes allocated above; the lock of the library is held.
    let status =
        hdf5::sync::sync(|| unsafe { H5Aread(attribute.id(), dtype.id(), value.as_mut_ptr().cast()) });
    hdf5::h5check(status).map(|_| value)
}

/// Opens a file for reading. Also returns a descriptor of the same open file.
pub(crate) fn open(path: &Path) -> hdf5::Result<(File, io::Result<OwnedFd>)> {
    let file = File::with_options()
        // No lock: a file gets its name only when it is complete and is never written again, and some file
        // systems have no locks. Also, a child process that inherited the writer's descriptor would keep its
        // lock. The driver is set explicitly, because an environment variable could select another.
        .with_fapl(|access| access.sec2().file_locking(false))
        .open(path)?;
    let mut descriptor: *mut c_int = ptr::null_mut();
    // SAFETY: the file's handle is open while it is borrowed, and the library writes one pointer; the lock of the
    // library is held.
    let status = hdf5::sync::sync(|| unsafe {
        H5Fget_vfd_handle(file.id(), H5P_DEFAULT, ptr::from_mut(&mut descriptor).cast())
    });
    hdf5::h5check(status)?;
    // SAFETY: with the driver named above the handle is a pointer to the descriptor, in memory of the open file, and
    // the descriptor is open as long as that is.
    let descriptor = unsafe { BorrowedFd::borrow_raw(*descriptor) }.try_clone_to_owned();
    Ok((file, descriptor))
}
