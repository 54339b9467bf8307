//! How large an expression is. What stands for other expressions (functions written in SQL, projections that are merged, filters that
//! move down) is put together only as long as the whole stays of a size that memory and stack hold: an expression that names a column
//! twice doubles with each level.

use super::Expr;

/// The size of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// It and all its parts.
    pub size: usize,
    /// How deep they are nested.
    pub depth: usize,
}

impl Shape {
    /// Parts at most.
    pub const SIZE_MAX: usize = 10_000;

    /// Levels at most.
    pub const DEPTH_MAX: usize = 400;

    /// A column or a constant.
    const LEAF: Shape = Shape { size: 1, depth: 1 };

    /// Of an expression as it is.
    pub fn of(expr: &Expr) -> Shape {
        Shape::with_columns(expr, &|_| Shape::LEAF)
    }

    /// Of an expression with others in the place of its columns.
    pub fn with_columns(expr: &Expr, of_column: &dyn Fn(usize) -> Shape) -> Shape {
        if let Expr::Column { index, .. } = expr {
            return of_column(*index);
        }
        let parts = expr.children().into_iter().map(|child| Shape::with_columns(child, of_column));
        let all = parts.fold(Shape { size: 0, depth: 0 }, |all, part| Shape {
            size: all.size.saturating_add(part.size),
            depth: all.depth.max(part.depth),
        });
        Shape { size: all.size.saturating_add(1), depth: all.depth.saturating_add(1) }
    }

    /// Whether it may be put together.
    pub fn fits(self) -> bool {
        self.size <= Shape::SIZE_MAX && self.depth <= Shape::DEPTH_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{DataType, TypeKind};

    fn plus(left: Expr, right: Expr) -> Expr {
        let data_type = DataType::nullable(TypeKind::BigInt);
        Expr::Call { function: "+".to_string(), args: vec![left, right], data_type }
    }

    #[test]
    fn each_use_of_a_column_counts() {
        let column = || Expr::column(0, DataType::nullable(TypeKind::BigInt));
        let expr = plus(plus(column(), column()), column());
        assert_eq!(Shape::of(&expr), Shape { size: 5, depth: 3 });
        let whole = Shape::with_columns(&expr, &|_| Shape { size: 4_000, depth: 398 });
        assert_eq!(whole, Shape { size: 12_002, depth: 400 });
        assert!(!whole.fits());
        assert!(Shape::with_columns(&expr, &|_| Shape { size: 400, depth: 398 }).fits());
        assert!(!Shape::with_columns(&expr, &|_| Shape { size: 400, depth: 399 }).fits());
    }
}
