//! Which URL is fetched next, and which never. Two objects: the concurrent [seen test](SeenTest) and the ordered
//! [workbench](Workbench), with the [ledger](Ledger) that says when a page may be recorded finished.
//! Synchronous: no I/O, no clock (`now` is an argument), no HTML, no SQL.

mod ledger;
mod scope;
mod seen;
mod workbench;

pub use ledger::*;
pub use scope::*;
pub use seen::*;
pub use workbench::*;
