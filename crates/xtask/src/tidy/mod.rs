//! The rules of the workspace that no compiler checks.

mod edges;
mod files;

use std::path::Path;

use anyhow::Result;

/// Returns every fault found below `root`, one line each.
///
/// # Errors
///
/// Fails when the workspace cannot be read.
pub(crate) fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = edges::faults(root)?;
    faults.extend(files::faults(root)?);
    Ok(faults)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_is_tidy() {
        let faults = super::faults(&crate::root()).expect("the workspace is readable");
        assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    }
}
