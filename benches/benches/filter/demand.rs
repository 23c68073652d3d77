//! What is demanded of the filter, and whether a run met it.

use benches::measure::line;

/// Collects verdicts, to be printed together at the end.
pub(crate) struct Demands {
    /// Keys of the run.
    pub(crate) keys_count: u64,
    verdicts: Vec<String>,
}

impl Demands {
    pub(crate) const fn new(keys_count: u64) -> Self {
        Self {
            keys_count,
            verdicts: Vec::new(),
        }
    }

    /// Demands that a figure is at most `most`.
    pub(crate) fn at_most(&mut self, name: &str, figure: f64, most: f64) {
        self.add(name, figure, figure <= most, &format!("at most {most}"));
    }

    /// Demands that a figure is at least `least`.
    pub(crate) fn at_least(&mut self, name: &str, figure: f64, least: f64) {
        self.add(name, figure, figure >= least, &format!("at least {least}"));
    }

    fn add(&mut self, name: &str, figure: f64, is_met: bool, demand: &str) {
        let verdict = if is_met { "PASS " } else { "SHORT" };
        self.verdicts
            .push(format!("{verdict} {name}: {figure:.3}, {demand} demanded"));
    }

    /// Prints all verdicts.
    pub(crate) fn print(&self) {
        line(format!(
            "\nWhat is demanded (at 50 M keys; this run had {})",
            self.keys_count
        ));
        for verdict in &self.verdicts {
            line(verdict);
        }
    }
}
