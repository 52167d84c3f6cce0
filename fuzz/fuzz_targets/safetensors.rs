//! Headers of safetensors: an accepted file is one that the library of the format accepts too, with the same arrays.
#![no_main]

use classifiers::files::tensors::Tensors;
use libfuzzer_sys::fuzz_target;
use safetensors::SafeTensors;

mod scratch;

fuzz_target!(|data: &[u8]| {
    // The length of the header is the number of bytes up to the first zero, so that the rest are values.
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let file = [&(end as u64).to_le_bytes()[..], data].concat();
    let Ok(found) = Tensors::open(&scratch::file("model.safetensors", &file)) else { return };
    let expected = SafeTensors::deserialize(&file).expect("the library accepts the file");
    let mut names = expected.names();
    names.sort_unstable();
    assert_eq!(found.names().collect::<Vec<_>>(), names);
    assert_eq!(found.n_bytes(), file.len() as u64);
});
