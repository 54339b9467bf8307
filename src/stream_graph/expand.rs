//! Expand as data: each row once for each grouping set, with NULL for the keys that the set leaves out.

use serde::{Deserialize, Serialize};

/// Copies of each row. Output: the columns, then the number of the copy (`$e`, BIGINT NOT NULL).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExpandSpec {
    /// Output columns by position in the input. One that is grouped by and aggregated stands there twice.
    pub columns: Vec<usize>,
    /// The copies in their order.
    pub copies: Vec<ExpandCopy>,
}

/// One copy of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExpandCopy {
    /// The output columns that are NULL in it, rising.
    pub nulls: Vec<usize>,
    /// Its number, which no other copy has.
    pub id: i64,
}

impl ExpandSpec {
    /// Whether a column is NULL in some copy.
    pub fn is_nulled(&self, column: usize) -> bool {
        self.copies.iter().any(|copy| copy.nulls.contains(&column))
    }

    /// The same copies of these output columns alone, which are read from where `moved` says. Columns that are left out take their
    /// NULLs with them.
    pub fn project(&self, kept: &[usize], moved: &dyn Fn(usize) -> usize) -> Self {
        let place = |column: &usize| kept.iter().position(|kept| kept == column);
        let copy = |copy: &ExpandCopy| {
            let mut nulls: Vec<usize> = copy.nulls.iter().filter_map(place).collect();
            nulls.sort_unstable();
            ExpandCopy { nulls, id: copy.id }
        };
        ExpandSpec {
            columns: kept.iter().map(|column| moved(self.columns[*column])).collect(),
            copies: self.copies.iter().map(copy).collect(),
        }
    }
}
