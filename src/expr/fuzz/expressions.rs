//! Random expressions that bind: each call takes parts at random until the function's own rule accepts them, and remembers what
//! it accepted.

use std::collections::HashMap;
use std::sync::Arc;

use fastrand::Rng;

use super::rows::{random_value, schema};
use crate::expr::{CastMode, Expr, FunctionRegistry, ScalarFunction, can_cast, common_type};
use crate::types::{DataType, TypeKind, Value};

/// Arguments that are tried for one call before another function is taken.
const ATTEMPTS: usize = 12;

/// Accepted argument types that are remembered for a function.
const REMEMBERED: usize = 40;

/// Functions whose clauses come as words from the binder: they are not called with anything.
const WITH_CLAUSES: [&str; 5] = ["JSON_VALUE", "JSON_QUERY", "JSON_EXISTS", "JSON_OBJECT", "JSON_ARRAY"];

/// Makes expressions over the columns of [`schema`].
pub(super) struct ExpressionMaker {
    functions: Vec<Arc<dyn ScalarFunction>>,
    columns: Vec<DataType>,
    accepted: HashMap<String, Vec<Vec<TypeKind>>>,
}

impl ExpressionMaker {
    pub(super) fn new(registry: &FunctionRegistry) -> Self {
        let functions = registry.names().into_iter().filter_map(|name| registry.scalar(&name));
        let functions =
            functions.filter(|function| function.is_deterministic() && !WITH_CLAUSES.contains(&function.name())).collect();
        ExpressionMaker { functions, columns: schema(), accepted: HashMap::new() }
    }

    /// An expression with calls up to this depth.
    pub(super) fn expression(&mut self, random: &mut Rng, depth: usize) -> Expr {
        if depth == 0 {
            return self.leaf(random);
        }
        match random.u8(..12) {
            0 => self.connective(random, depth),
            1 => self.case(random, depth),
            2 => self.cast(random, depth),
            3 => self.in_list(random, depth),
            _ => self.call(random, depth),
        }
    }

    fn leaf(&mut self, random: &mut Rng) -> Expr {
        let index = random.usize(..self.columns.len());
        self.leaf_of(index, random)
    }

    /// A column, or a constant of its type.
    fn leaf_of(&self, index: usize, random: &mut Rng) -> Expr {
        let data_type = self.columns[index].clone();
        match random.u8(..4) {
            0 => Expr::literal(random_value(&data_type, random), data_type.with_nullable(false)),
            _ => Expr::column(index, data_type),
        }
    }

    /// A part of this type: a call if one comes up, else a column or a cast of one.
    fn of_kind(&mut self, kind: &TypeKind, random: &mut Rng, depth: usize) -> Expr {
        if depth > 0 && random.bool() {
            let expr = self.expression(random, depth - 1);
            if expr.data_type().kind == *kind {
                return expr;
            }
        }
        match self.columns.iter().position(|column| column.kind == *kind) {
            Some(index) => self.leaf_of(index, random),
            None => {
                let data_type = DataType::not_null(kind.clone());
                Expr::literal(random_value(&data_type, random), data_type)
            }
        }
    }

    fn boolean(&mut self, random: &mut Rng, depth: usize) -> Expr {
        self.of_kind(&TypeKind::Boolean, random, depth)
    }

    fn connective(&mut self, random: &mut Rng, depth: usize) -> Expr {
        let terms = (0..random.usize(2..4)).map(|_| self.boolean(random, depth)).collect();
        match random.u8(..3) {
            0 => Expr::And(terms),
            1 => Expr::Or(terms),
            _ => Expr::Not(Box::new(Expr::And(terms))),
        }
    }

    fn case(&mut self, random: &mut Rng, depth: usize) -> Expr {
        let result = self.expression(random, depth - 1);
        let kind = result.data_type().kind;
        let when = self.boolean(random, depth);
        let other = self.of_kind(&kind, random, depth - 1);
        let nullable = result.data_type().nullable || other.data_type().nullable;
        let data_type = result.data_type().regular().with_nullable(nullable);
        Expr::Case { branches: vec![(when, result)], otherwise: Box::new(other), data_type }
    }

    fn cast(&mut self, random: &mut Rng, depth: usize) -> Expr {
        let input = self.expression(random, depth - 1);
        for _ in 0..ATTEMPTS {
            let target = self.columns[random.usize(..self.columns.len())].clone();
            if can_cast(&input.data_type(), &target) {
                let mode = if random.bool() { CastMode::Strict } else { CastMode::Try };
                let nullable = input.data_type().nullable || mode == CastMode::Try;
                return Expr::Cast { input: Box::new(input), data_type: target.with_nullable(nullable), mode };
            }
        }
        input
    }

    fn in_list(&mut self, random: &mut Rng, depth: usize) -> Expr {
        let needle = self.expression(random, depth - 1);
        let data_type = needle.data_type();
        let comparable = common_type(&[data_type.clone(), data_type.clone()]).is_some();
        let nested = matches!(data_type.kind, TypeKind::Array(_) | TypeKind::Map(..) | TypeKind::Row(_) | TypeKind::Multiset(_));
        if !comparable || nested || matches!(data_type.kind, TypeKind::Null | TypeKind::Variant | TypeKind::Bitmap) {
            return needle;
        }
        let value = |random: &mut Rng| if random.u8(..8) == 0 { Value::Null } else { random_value(&data_type, random) };
        let list = (0..random.usize(1..6)).map(|_| value(random)).collect();
        Expr::InList { needle: Box::new(needle), list, negated: random.bool() }
    }

    fn call(&mut self, random: &mut Rng, depth: usize) -> Expr {
        loop {
            let function = Arc::clone(&self.functions[random.usize(..self.functions.len())]);
            for _ in 0..ATTEMPTS {
                let args = self.arguments(function.name(), random, depth);
                let kinds: Vec<TypeKind> = args.iter().map(|arg| arg.data_type().kind).collect();
                if let Ok(expr) = function.bind(args) {
                    self.remember(function.name(), kinds);
                    return expr;
                }
            }
        }
    }

    /// Arguments of types that the function took before, or any.
    fn arguments(&mut self, function: &str, random: &mut Rng, depth: usize) -> Vec<Expr> {
        let known = self.accepted.get(function).filter(|_| random.u8(..4) > 0);
        match known.map(|known| known[random.usize(..known.len())].clone()) {
            Some(kinds) => kinds.iter().map(|kind| self.of_kind(kind, random, depth - 1)).collect(),
            None => (0..random.usize(..4)).map(|_| self.leaf(random)).collect(),
        }
    }

    fn remember(&mut self, function: &str, kinds: Vec<TypeKind>) {
        let known = self.accepted.entry(function.to_string()).or_default();
        if known.len() < REMEMBERED && !known.contains(&kinds) {
            known.push(kinds);
        }
    }
}
