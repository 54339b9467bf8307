//! Functions that Flink has and Flott has not yet: named in queries, they are refused as not supported rather than as unknown.

/// Their names, sorted.
const MISSING: &[&str] = &["GROUPING", "GROUPING_ID", "GROUP_ID", "SOURCE_WATERMARK"];

/// Whether Flink has a function of this name that Flott has not.
pub(super) fn is_missing(name: &str) -> bool {
    MISSING.binary_search(&name.to_uppercase().as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::builtin_functions;

    #[test]
    fn the_list_is_sorted_and_names_nothing_that_is_there() {
        assert!(MISSING.is_sorted());
        let functions = builtin_functions();
        let there: Vec<_> =
            MISSING.iter().filter(|name| functions.scalar(name).is_some() || functions.aggregate(name).is_some()).collect();
        assert!(there.is_empty(), "{there:?}");
    }
}
