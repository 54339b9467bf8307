//! How functions of the program are called: the types of their arguments, and which of several forms a call means.

use std::mem::discriminant;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType as ArrowType;

use super::rows::Arguments;
use crate::error::{Error, ErrorKind, Result};
use crate::expr::{CastMode, Expr, can_cast_implicitly};
use crate::types::{DataType, TypeKind, Value};

/// The arguments of one form of a function.
pub(super) struct Signature {
    params: Vec<Param>,
}

struct Param {
    kind: TypeKind,
    /// Whether it takes no NULL: where the argument is, the function is not called.
    strict: bool,
}

impl Signature {
    /// Of these types; what NULL means is the function's own affair.
    pub(super) fn of_types(types: impl IntoIterator<Item = DataType>) -> Self {
        Signature { params: types.into_iter().map(|data_type| Param { kind: data_type.kind, strict: false }).collect() }
    }

    /// Of Rust types.
    pub(super) fn of<A: Arguments>() -> Self {
        Signature { params: A::params().into_iter().map(|(kind, strict)| Param { kind, strict }).collect() }
    }

    /// For each argument whether it takes no NULL.
    pub(super) fn strict(&self) -> Vec<bool> {
        self.params.iter().map(|param| param.strict).collect()
    }

    fn text(&self, name: &str) -> String {
        let types: Vec<String> =
            self.params.iter().map(|param| format!("<{}>", DataType::nullable(param.kind.clone()).kind_text())).collect();
        format!("{name}({})", types.join(", "))
    }

    /// Whether an argument that takes no NULL can be NULL.
    pub(super) fn can_be_skipped(&self, args: &[Expr]) -> bool {
        args.iter().zip(&self.params).any(|(arg, param)| param.strict && arg.data_type().nullable)
    }

    /// How many arguments are of another type, and how many of another kind of type: DECIMAL(3, 1) and DECIMAL(9, 2) are of one.
    fn distance(&self, args: &[Expr]) -> (usize, usize) {
        let types = args.iter().map(Expr::data_type).zip(&self.params);
        let is_other = |(given, param): &(DataType, &Param)| discriminant(&given.kind) != discriminant(&param.kind);
        let others: Vec<_> = types.filter(|(given, param)| !param.is_same(given)).collect();
        (others.iter().filter(|pair| is_other(pair)).count(), others.len())
    }

    /// The arguments, cast to what it takes; none = it does not take them.
    fn accept(&self, args: &[Expr]) -> Option<Vec<Expr>> {
        if args.len() != self.params.len() {
            return None;
        }
        args.iter().zip(&self.params).map(|(arg, param)| param.accept(arg)).collect()
    }

    fn arrow_types(&self) -> impl Iterator<Item = ArrowType> + '_ {
        self.params.iter().map(|param| DataType::nullable(param.kind.clone()).to_arrow())
    }
}

impl Param {
    fn is_same(&self, given: &DataType) -> bool {
        let is_text = given.is_character() && self.kind == DataType::string().kind;
        given.kind == self.kind || is_text
    }

    fn accept(&self, arg: &Expr) -> Option<Expr> {
        let given = arg.data_type();
        if self.is_same(&given) {
            return Some(arg.clone());
        }
        if let Expr::Literal { value: Value::Null, .. } = arg {
            return Some(Expr::literal(Value::Null, DataType::nullable(self.kind.clone())));
        }
        let data_type = DataType::new(self.kind.clone(), given.nullable);
        can_cast_implicitly(&given, &data_type).then(|| Expr::Cast {
            input: Box::new(arg.clone()),
            data_type,
            mode: CastMode::Implicit,
        })
    }
}

/// A function by its name, in one form or several.
pub(super) struct Overloads<T> {
    name: String,
    signatures: String,
    forms: Vec<(Signature, T)>,
}

impl<T> Overloads<T> {
    /// One form.
    pub(super) fn new(name: String, signature: Signature, form: T) -> Self {
        Overloads { signatures: signature.text(&name), name, forms: vec![(signature, form)] }
    }

    /// With the forms of another function, under this name.
    pub(super) fn or(mut self, other: Self) -> Self {
        for (signature, form) in other.forms {
            self.signatures = format!("{}\n{}", self.signatures, signature.text(&self.name));
            self.forms.push((signature, form));
        }
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How it is called, a form a line.
    pub(super) fn signatures(&self) -> &str {
        &self.signatures
    }

    /// The form that a call means, and the arguments as it takes them: of those that take them the one that is nearest, which is the
    /// one of just these types where there is one; of several the first.
    pub(super) fn bind(&self, args: &[Expr]) -> Result<(&Signature, &T, Vec<Expr>)> {
        let accepting = self.forms.iter().filter_map(|(signature, form)| Some((signature, form, signature.accept(args)?)));
        let bound = accepting.min_by_key(|(signature, ..)| signature.distance(args));
        bound.ok_or_else(|| {
            let given: Vec<String> = args.iter().map(|arg| arg.data_type().regular().to_string()).collect();
            let message = format!("function {} does not take arguments of type ({})", self.name, given.join(", "));
            let forms: Vec<&str> = self.signatures.lines().collect();
            Error::new(ErrorKind::TypeMismatch, message).with_hint(format!("it is called as {}", forms.join(" or ")))
        })
    }

    /// The form that takes arrays of these types: those that [`Self::bind`] gave.
    pub(super) fn of_types(&self, types: impl Iterator<Item = ArrowType> + Clone) -> Result<&(Signature, T)> {
        let found = self.forms.iter().find(|(signature, _)| signature.arrow_types().eq(types.clone()));
        found.ok_or_else(|| {
            let types: Vec<String> = types.map(|data_type| data_type.to_string()).collect();
            Error::internal(format!("function {} was bound to other types than ({})", self.name, types.join(", ")))
                .with_hint("the function that was registered when the job was planned is another one")
        })
    }

    /// The same of arrays.
    pub(super) fn of_arrays(&self, args: &[ArrayRef]) -> Result<&(Signature, T)> {
        self.of_types(args.iter().map(|array| array.data_type().clone()))
    }

    /// All forms.
    pub(super) fn forms(&self) -> impl Iterator<Item = &T> {
        self.forms.iter().map(|(_, form)| form)
    }

    /// All forms, to be changed.
    pub(super) fn forms_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.forms.iter_mut().map(|(_, form)| form)
    }

    /// What is wrong with the declaration, if anything is.
    pub(super) fn check(&self) -> Result<()> {
        if self.name.trim().is_empty() {
            return Err(Error::new(ErrorKind::InvalidArgument, "a function needs a name"));
        }
        for (at, (signature, _)) in self.forms.iter().enumerate() {
            if self.forms[..at].iter().any(|(other, _)| other.arrow_types().eq(signature.arrow_types())) {
                let form = signature.text(&self.name);
                let error = Error::new(ErrorKind::DuplicateObject, format!("function {} has the form {form} twice", self.name));
                return Err(error.with_hint("types that are one in Arrow, as CHAR(3) and STRING, make no two forms"));
            }
        }
        Ok(())
    }
}
