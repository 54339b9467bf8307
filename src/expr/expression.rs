//! A typed expression as plain data: columns by position, functions by name, so that it can be sent to another process.

use serde::{Deserialize, Serialize};

use crate::types::{DataType, TypeKind, Value};

/// What a cast does with a value that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CastMode {
    /// CAST: an error.
    Strict,
    /// TRY_CAST: NULL.
    Try,
    /// Put in by the planner where types are brought together; an error as for CAST, but not shown in plans as the user's.
    Implicit,
}

/// A typed expression over the columns of one input (of two joined inputs: left columns, then right ones).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// A column of the input, by position.
    Column {
        /// Position.
        index: usize,
        /// Type, with its time attribute.
        data_type: DataType,
    },
    /// A constant.
    Literal {
        /// Value.
        value: Value,
        /// Type.
        data_type: DataType,
    },
    /// A scalar function of the registry; operators are functions too (`+`, `=`, `LIKE`, `IS NULL` …).
    Call {
        /// Name in the registry, upper case for built-in ones.
        function: String,
        /// Arguments, already of the types that the function takes.
        args: Vec<Expr>,
        /// Result type.
        data_type: DataType,
    },
    /// A cast.
    Cast {
        /// What is cast.
        input: Box<Expr>,
        /// To this type.
        data_type: DataType,
        /// What happens to a value that does not fit.
        mode: CastMode,
    },
    /// All of them, in three-valued logic. Later terms are evaluated only where the former ones are not false.
    And(Vec<Expr>),
    /// Any of them, in three-valued logic. Later terms are evaluated only where the former ones are not true.
    Or(Vec<Expr>),
    /// Negation in three-valued logic.
    Not(Box<Expr>),
    /// CASE WHEN … THEN … ELSE … END (COALESCE, IF, NULLIF and the simple CASE are brought to it). A result is evaluated only
    /// where its condition holds.
    Case {
        /// Conditions and results, all results of `data_type`.
        branches: Vec<(Expr, Expr)>,
        /// What else; a NULL literal when there was no ELSE.
        otherwise: Box<Expr>,
        /// Result type.
        data_type: DataType,
    },
    /// `needle IN (constants)`; a NULL among them makes a miss NULL.
    InList {
        /// What is looked for.
        needle: Box<Expr>,
        /// Constants of the needle's type.
        list: Vec<Value>,
        /// NOT IN.
        negated: bool,
    },
}

impl Expr {
    /// A column.
    pub fn column(index: usize, data_type: DataType) -> Self {
        Expr::Column { index, data_type }
    }

    /// A constant.
    pub fn literal(value: Value, data_type: DataType) -> Self {
        Expr::Literal { value, data_type }
    }

    /// The type.
    pub fn data_type(&self) -> DataType {
        match self {
            Expr::Column { data_type, .. }
            | Expr::Literal { data_type, .. }
            | Expr::Call { data_type, .. }
            | Expr::Cast { data_type, .. }
            | Expr::Case { data_type, .. } => data_type.clone(),
            Expr::And(terms) | Expr::Or(terms) => {
                DataType::new(TypeKind::Boolean, terms.iter().any(|term| term.data_type().nullable))
            }
            Expr::Not(inner) => DataType::new(TypeKind::Boolean, inner.data_type().nullable),
            Expr::InList { needle, list, .. } => {
                DataType::new(TypeKind::Boolean, needle.data_type().nullable || list.iter().any(Value::is_null))
            }
        }
    }

    /// Its direct parts.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Column { .. } | Expr::Literal { .. } => Vec::new(),
            Expr::Call { args, .. } => args.iter().collect(),
            Expr::Cast { input, .. } => vec![input],
            Expr::And(terms) | Expr::Or(terms) => terms.iter().collect(),
            Expr::Not(inner) => vec![inner],
            Expr::Case { branches, otherwise, .. } => {
                branches.iter().flat_map(|(when, then)| [when, then]).chain([otherwise.as_ref()]).collect()
            }
            Expr::InList { needle, .. } => vec![needle],
        }
    }

    /// The same expression with every direct part mapped by `f`.
    pub fn map_children(self, f: &mut impl FnMut(Expr) -> Expr) -> Expr {
        let map_all = |exprs: Vec<Expr>, f: &mut dyn FnMut(Expr) -> Expr| exprs.into_iter().map(f).collect::<Vec<_>>();
        match self {
            Expr::Column { .. } | Expr::Literal { .. } => self,
            Expr::Call { function, args, data_type } => Expr::Call { function, args: map_all(args, f), data_type },
            Expr::Cast { input, data_type, mode } => Expr::Cast { input: Box::new(f(*input)), data_type, mode },
            Expr::And(terms) => Expr::And(map_all(terms, f)),
            Expr::Or(terms) => Expr::Or(map_all(terms, f)),
            Expr::Not(inner) => Expr::Not(Box::new(f(*inner))),
            Expr::Case { branches, otherwise, data_type } => Expr::Case {
                branches: branches.into_iter().map(|(when, then)| (f(when), f(then))).collect(),
                otherwise: Box::new(f(*otherwise)),
                data_type,
            },
            Expr::InList { needle, list, negated } => Expr::InList { needle: Box::new(f(*needle)), list, negated },
        }
    }

    /// The same expression with every column mapped by `f` from position and type: for push-down and pruning.
    pub fn map_columns(self, f: &mut impl FnMut(usize, DataType) -> Expr) -> Expr {
        match self {
            Expr::Column { index, data_type } => f(index, data_type),
            other => {
                let f: &mut dyn FnMut(usize, DataType) -> Expr = f;
                other.map_children(&mut |child| map_columns_dyn(child, f))
            }
        }
    }

    /// The positions of all columns in it, rising, each once.
    pub fn columns(&self) -> Vec<usize> {
        fn visit(expr: &Expr, found: &mut Vec<usize>) {
            if let Expr::Column { index, .. } = expr {
                found.push(*index);
            }
            expr.children().into_iter().for_each(|child| visit(child, found));
        }
        let mut found = Vec::new();
        visit(self, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn map_columns_dyn(expr: Expr, f: &mut dyn FnMut(usize, DataType) -> Expr) -> Expr {
    match expr {
        Expr::Column { index, data_type } => f(index, data_type),
        other => other.map_children(&mut |child| map_columns_dyn(child, f)),
    }
}

/// One aggregate of a query: function, arguments by position in the input, and what modifies it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AggregateCall {
    /// Name in the registry: `COUNT`, `SUM` …
    pub function: String,
    /// Input columns, of the types that the function takes. COUNT(*) has none.
    pub args: Vec<usize>,
    /// The types of those columns.
    pub arg_types: Vec<DataType>,
    /// DISTINCT.
    pub distinct: bool,
    /// ORDER BY within the call: keys by their positions among the arguments.
    pub order: Vec<SortKey>,
    /// FILTER (WHERE …): a BOOLEAN input column.
    pub filter: Option<usize>,
    /// Result type.
    pub data_type: DataType,
    /// Name of the result column.
    pub name: String,
}

/// One key of an ORDER BY.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SortKey {
    /// Input column.
    pub column: usize,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST. In Flink NULL is the least value: first when ascending, last when descending.
    pub nulls_first: bool,
}
