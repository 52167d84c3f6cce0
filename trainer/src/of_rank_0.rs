//! What rank 0 finds out for all ranks.

use program::exit::{Exit, Failed, chain};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Runs a function on rank 0 and broadcasts its result. `broadcast` sends the bytes of rank 0, and returns them on all
/// ranks. If the function fails, all ranks fail: rank 0 with the error, the others with its message.
pub(crate) fn of_rank_0<T: Serialize + DeserializeOwned>(
    is_first: bool,
    find_out: impl FnOnce() -> Result<T>,
    broadcast: impl FnOnce(Vec<u8>) -> Result<Vec<u8>>,
) -> Result<T> {
    let own = is_first.then(find_out);
    let sent = own.as_ref().map(|own| own.as_ref().map_err(|error| chain(error)));
    let message = match &sent {
        Some(sent) => serde_json::to_vec(sent).map_err(|error| Error::internal(&error))?,
        None => Vec::new(),
    };
    let received = broadcast(message);
    if let Some(Err(error)) = own {
        return Err(error);
    }
    // Rank 0 uses the decoded value too, so that all ranks have the same.
    let sent: std::result::Result<T, String> =
        serde_json::from_slice(&received?).map_err(|error| Error::internal(&error))?;
    sent.map_err(|message| Failed::new(Exit::TryAgain, format!("rank 0 failed: {message}")).into())
}
