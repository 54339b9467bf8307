//! Calls of aggregates: their arguments, and what may stand beside these: DISTINCT, ORDER BY, IGNORE NULLS, FILTER.

use sqlparser::ast::{Expr as SqlExpr, NullTreatment};

use super::call::usage;
use super::expression::{AggregateRule, ExprBinder, place};
use super::function::Call;
use super::parts::{BoundAggregate, Stage};
use super::query::sort_key;
use super::span::Located;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{AggregateFunction, ArgumentOrder, Expr, SortKey};
use crate::types::DataType;

/// The arguments of a call with its type.
pub(super) struct TypedCall {
    /// Arguments, of the types that the function takes.
    pub args: Vec<Expr>,
    /// ORDER BY: keys by their positions among the arguments.
    pub order: Vec<SortKey>,
    /// Result type.
    pub data_type: DataType,
}

impl ExprBinder<'_, '_> {
    /// A call without OVER: collected, its place taken by a column.
    pub(super) fn aggregate_call(
        &mut self,
        function: &dyn AggregateFunction,
        call: &Call<'_>,
        filter: Option<&SqlExpr>,
    ) -> Result<Expr> {
        let name = function.name().to_string();
        if self.stage == Stage::Input && matches!(self.aggregates, AggregateRule::Collected { .. }) {
            return Err(
                Error::new(ErrorKind::Grouping, "aggregates cannot be nested").with_hint("compute the inner one in a subquery")
            );
        }
        let AggregateRule::Collected { grouped } = self.aggregates else {
            return Err(Error::new(ErrorKind::Grouping, format!("an aggregate is not allowed in {}", self.clause))
                .with_hint("filter aggregates with HAVING, or compute them in a subquery"));
        };
        if call.is_star(&name) && call.distinct {
            return Err(Error::new(ErrorKind::Syntax, "COUNT(DISTINCT *) does not exist").with_hint("name the columns"));
        }
        let leaves_nulls_out = leaves_nulls_out(&name, call.nulls)?;
        // Arguments, keys and filter are evaluated before the aggregation.
        let outer = std::mem::replace(&mut self.stage, Stage::Input);
        let bound = (|| {
            let filter = filter.map(|filter| self.bind_condition(filter, "the condition of FILTER")).transpose()?;
            // A filter can leave a group without rows, as an empty input can.
            let never_empty = grouped && filter.is_none() && !leaves_nulls_out;
            Ok::<_, Error>((self.typed_call(function, call, never_empty)?, filter))
        })();
        self.stage = outer;
        let (typed, mut filter) = bound?;
        if leaves_nulls_out {
            filter = self.not_null_and(&typed.args[0], filter)?;
        }
        let TypedCall { args, order, data_type } = typed;
        Ok(self.aggregate(BoundAggregate { function: name, args, distinct: call.distinct, order, filter, data_type }))
    }

    /// The arguments of a call, with the keys of its ORDER BY among them. `has_rows`: there is always a row that it looks at.
    pub(super) fn typed_call(&mut self, function: &dyn AggregateFunction, call: &Call<'_>, has_rows: bool) -> Result<TypedCall> {
        let name = function.name();
        let is_count_star = call.is_star(name);
        let mut args = if is_count_star { Vec::new() } else { self.arguments(name, call)? };
        if name == "COUNT" && args.is_empty() && !is_count_star {
            return Err(Error::new(ErrorKind::InvalidArgument, "COUNT counts nothing").with_hint("write COUNT(*)"));
        }
        let mut keys = Vec::with_capacity(call.order.len());
        for key in &call.order {
            let bound = self.bind(&key.expr)?;
            let data_type = bound.data_type();
            if !data_type.is_sortable() {
                let message = format!("values of type {} have no order", data_type.regular());
                return Err(Error::new(ErrorKind::TypeMismatch, message).at_span(place(&key.expr)));
            }
            let direction = sort_key(0, key)?;
            // A constant orders nothing.
            if !matches!(bound, Expr::Literal { .. }) {
                keys.push((bound, direction));
            }
        }
        match function.argument_order() {
            ArgumentOrder::None if !keys.is_empty() => {
                let error = Error::new(ErrorKind::Syntax, format!("ORDER BY does not go with {name}"));
                return Err(
                    error.with_hint("it goes with ARRAY_AGG, LISTAGG, JSON_ARRAYAGG, PERCENTILE_CONT, PERCENTILE_DISC and MODE")
                );
            }
            ArgumentOrder::Argument { needed } => match keys.len() {
                0 if needed => {
                    let error = Error::new(ErrorKind::Syntax, format!("{name} needs WITHIN GROUP"));
                    return Err(error.with_hint(usage(function.signatures())));
                }
                0 => {}
                1 => {
                    let (key, direction) = keys.remove(0);
                    args.insert(0, key);
                    keys.push((args[0].clone(), direction));
                }
                _ => return Err(Error::new(ErrorKind::InvalidArgument, format!("{name} takes one key in its ORDER BY"))),
            },
            ArgumentOrder::Meaningless => keys.clear(),
            ArgumentOrder::None | ArgumentOrder::Values => {}
        }
        let typed = function.bind(args, call.distinct, has_rows).map_err(|error| match error.hint() {
            Some(_) => error,
            None => error.with_hint(usage(function.signatures())),
        });
        let (mut args, data_type) = typed?;
        let mut order = Vec::with_capacity(keys.len());
        for (key, direction) in keys {
            let column = match args.iter().position(|arg| *arg == key) {
                _ if matches!(function.argument_order(), ArgumentOrder::Argument { .. }) => 0,
                Some(column) => column,
                None if call.distinct => {
                    let error =
                        Error::new(ErrorKind::Grouping, format!("with DISTINCT, ORDER BY in {name} takes only its arguments"));
                    return Err(error.with_hint("of rows with one value it is not known whose key counts"));
                }
                None => {
                    args.push(key);
                    args.len() - 1
                }
            };
            order.push(SortKey { column, ..direction });
        }
        Ok(TypedCall { args, order, data_type })
    }

    /// A filter that leaves NULLs of an argument out too.
    pub(super) fn not_null_and(&self, arg: &Expr, filter: Option<Expr>) -> Result<Option<Expr>> {
        let not_null = self.binder.call("IS NOT NULL", vec![arg.clone()])?;
        Ok(Some(match filter {
            Some(filter) => Expr::And(vec![not_null, filter]),
            None => not_null,
        }))
    }
}

/// Whether a call without OVER leaves NULLs out because it is told to. FIRST_VALUE and LAST_VALUE do so anyway.
fn leaves_nulls_out(name: &str, nulls: Option<NullTreatment>) -> Result<bool> {
    match (name, nulls) {
        (_, None)
        | ("ARRAY_AGG", Some(NullTreatment::RespectNulls))
        | ("FIRST_VALUE" | "LAST_VALUE", Some(NullTreatment::IgnoreNulls)) => Ok(false),
        ("ARRAY_AGG", Some(NullTreatment::IgnoreNulls)) => Ok(true),
        ("FIRST_VALUE" | "LAST_VALUE", Some(NullTreatment::RespectNulls)) => {
            Err(Error::unsupported(format!("RESPECT NULLS of {name} without OVER"))
                .with_hint(format!("write {name}(…) RESPECT NULLS OVER (PARTITION BY … ORDER BY …)")))
        }
        (_, Some(treatment)) => Err(no_null_treatment(name, treatment)),
    }
}

/// The error for IGNORE NULLS or RESPECT NULLS where it means nothing.
pub(super) fn no_null_treatment(name: &str, treatment: NullTreatment) -> Error {
    let error = Error::new(ErrorKind::Syntax, format!("{treatment} does not go with {name}"));
    error.with_hint("it goes with ARRAY_AGG, FIRST_VALUE and LAST_VALUE, and with OVER also with NTH_VALUE, LAG and LEAD")
}
