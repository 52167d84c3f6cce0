//! placeholder until merged

/// What somebody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A checkpoint, then the end.
    Stop,
    /// A checkpoint.
    Checkpoint,
}

/// x
pub struct Interrupts;
impl Interrupts {
    /// x
    pub fn listen() -> crate::Result<Self> {
        Ok(Self)
    }
    /// x
    pub fn asked(&self) -> Option<Asked> {
        None
    }
}
