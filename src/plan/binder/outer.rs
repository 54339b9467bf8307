//! Columns of queries further out: what makes a subquery correlated.
//!
//! While a subquery is bound, the names of each query around it are at hand as a frame. A name that is found there becomes a column
//! beyond [`OUTER_BASE`], which stands for an expression that the frame keeps. Decorrelation takes such columns out of the plan again.

use std::cell::RefCell;
use std::rc::Rc;

use super::scope::Scope;
use super::state::Binder;
use crate::expr::Expr;
use crate::plan::LogicalPlan;

/// Columns from here on stand for expressions over queries further out.
pub(super) const OUTER_BASE: usize = 1 << 28;
/// Columns of each of these queries, at most.
const LEVEL_WIDTH: usize = 1 << 20;

/// The names of a query while a subquery of it is bound.
#[derive(Debug)]
pub(super) struct Frame {
    scope: Scope,
    /// How many queries are further out.
    level: usize,
    /// What the subquery reads, over the columns of the scope.
    captured: RefCell<Vec<Expr>>,
}

impl Frame {
    /// The names.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// How many queries are further out.
    pub fn level(&self) -> usize {
        self.level
    }

    /// What the subquery reads so far.
    pub fn captured(&self) -> Vec<Expr> {
        self.captured.borrow().clone()
    }

    /// The column that stands for an expression over the scope.
    pub fn capture(&self, expr: &Expr) -> Expr {
        let mut captured = self.captured.borrow_mut();
        let at = captured.iter().position(|known| known == expr).unwrap_or_else(|| {
            captured.push(expr.clone());
            captured.len() - 1
        });
        Expr::column(OUTER_BASE + self.level * LEVEL_WIDTH + at, expr.data_type())
    }
}

impl Binder<'_> {
    /// A binder for a subquery among these names, and their frame.
    pub(super) fn within(&self, scope: &Scope) -> (Self, Rc<Frame>) {
        let frame = Rc::new(Frame { scope: scope.clone(), level: self.outers.len(), captured: RefCell::default() });
        let mut binder = self.clone();
        binder.outers.push(Rc::clone(&frame));
        (binder, frame)
    }
}

/// The number of an expression that a frame of this level keeps, if the column stands for one.
pub(super) fn captured_at(column: usize, level: usize) -> Option<usize> {
    let number = column.checked_sub(OUTER_BASE + level * LEVEL_WIDTH)?;
    (number < LEVEL_WIDTH).then_some(number)
}

/// Whether an expression reads a query further out.
pub(super) fn is_correlated(expr: &Expr) -> bool {
    expr.columns().last().is_some_and(|column| *column >= OUTER_BASE)
}

/// Whether a plan reads a query further out.
pub(super) fn has_outer(plan: &LogicalPlan) -> bool {
    let own = match plan {
        LogicalPlan::Project { exprs, .. } => exprs.iter().any(is_correlated),
        LogicalPlan::Filter { predicate, .. } => is_correlated(predicate),
        LogicalPlan::Join { condition, .. } => is_correlated(condition),
        LogicalPlan::Unnest { spec, .. } => is_correlated(&spec.collection) || spec.condition.iter().any(is_correlated),
        _ => false,
    };
    own || plan.inputs().into_iter().any(has_outer)
}
