//! The failures of a store.

/// Our own store's failure: never the web's.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process holds this crawl.
    #[error("{0} is in use by another process")]
    Locked(String),
    /// Not reachable now; trying again later may help.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The disk has no room for what was to be written; what is there is whole.
    #[error("{0}")]
    DiskFull(String),
    /// The stored form is of another version, or of another product.
    #[error("{0}")]
    Incompatible(String),
    /// A stored value cannot be read back.
    #[error("the store holds a damaged value: {0}")]
    Corrupt(String),
    /// Any other failure of the backend.
    #[error("{0}")]
    Backend(String),
}
