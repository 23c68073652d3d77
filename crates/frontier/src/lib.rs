//! Which URL is fetched next, and which never. Two objects: the concurrent [seen test](SeenTest) and the ordered
//! [workbench](Workbench), with the [ledger](Ledger) that says when a page may be recorded finished.
//! Synchronous: no I/O, no clock (`now` is an argument), no HTML, no SQL.

mod ledger;
mod scope;
mod seen;
mod workbench;

pub use ledger::{Batch, Ledger};
pub use scope::{Scope, ScopeConfig, ScopeError, ScopeRule, ScopeRuleError};
pub use seen::{
    Admission, PageToken, SeenConfig, SeenMode, SeenStats, SeenTest, Settled, UnknownMode,
};
pub use workbench::{
    Action, Fetched, NextStep, RobotsAnswer, Setback, Setbacks, SpentDomains, WaitingHosts,
    Workbench, WorkbenchConfig, WorkbenchStats,
};
