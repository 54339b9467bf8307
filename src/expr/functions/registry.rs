//! The list of all built-in scalar functions and their other names.

use std::sync::Arc;

use super::builtin::Builtin;
use super::{
    arithmetic, array_parts, array_sets, bitmap, comparison, conditional, digest, encoding, hash_code, inet, json_build,
    json_path, json_text, like, logic, maps, math, moment, nested, objects, printf, regexp, series, str_to_map, text_case,
    text_parts, time_parts, time_shift, time_text, to_char, unix_time, url, variant,
};
use crate::expr::FunctionRegistry;
use crate::expr::aggregate::builtin_aggregates;

/// The families, in the order of the files.
const FAMILIES: &[&[Builtin]] = &[
    arithmetic::FUNCTIONS,
    comparison::FUNCTIONS,
    logic::FUNCTIONS,
    conditional::FUNCTIONS,
    like::FUNCTIONS,
    regexp::FUNCTIONS,
    text_case::FUNCTIONS,
    text_parts::FUNCTIONS,
    encoding::FUNCTIONS,
    str_to_map::FUNCTIONS,
    math::FUNCTIONS,
    time_parts::FUNCTIONS,
    time_shift::FUNCTIONS,
    time_text::FUNCTIONS,
    to_char::FUNCTIONS,
    unix_time::FUNCTIONS,
    moment::FUNCTIONS,
    nested::FUNCTIONS,
    objects::FUNCTIONS,
    series::FUNCTIONS,
    array_parts::FUNCTIONS,
    array_sets::FUNCTIONS,
    maps::FUNCTIONS,
    json_path::FUNCTIONS,
    json_build::FUNCTIONS,
    json_text::FUNCTIONS,
    bitmap::FUNCTIONS,
    variant::FUNCTIONS,
    digest::FUNCTIONS,
    hash_code::FUNCTIONS,
    inet::FUNCTIONS,
    printf::FUNCTIONS,
    url::FUNCTIONS,
];

/// Other names: alias and function.
const ALIASES: &[(&str, &str)] = &[
    ("MOD", "%"),
    ("CHARACTER_LENGTH", "CHAR_LENGTH"),
    ("SUBSTR", "SUBSTRING"),
    ("CEILING", "CEIL"),
    ("TRANSLATE3", "TRANSLATE"),
];

/// All built-in functions, scalar and aggregate.
pub fn builtin_functions() -> FunctionRegistry {
    let mut registry = FunctionRegistry::default();
    for function in FAMILIES.iter().copied().flatten() {
        registry.register_scalar(function.name, Arc::new(*function));
    }
    for (alias, name) in ALIASES {
        let function = registry.scalar(name).expect("aliases name functions of the list");
        registry.register_scalar(alias, function);
    }
    builtin_aggregates(&mut registry);
    registry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_function_is_listed_twice() {
        let mut names: Vec<&str> = FAMILIES.iter().copied().flatten().map(|function| function.name).collect();
        names.extend(ALIASES.iter().map(|(alias, _)| *alias));
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
