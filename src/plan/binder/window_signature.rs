//! How each window table function is called: its parameters, given by position or by name.

use sqlparser::ast::{self, Expr as SqlExpr, FunctionArg, FunctionArgExpr};

use super::expression::place;
use super::span::{Located, convert};
use crate::error::{Error, ErrorKind, Result};

/// A parameter of a window table function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parameter {
    Data,
    TimeColumn,
    Slide,
    Step,
    Size,
    Gap,
    Offset,
}

/// A window table function: its name, its parameters in order and how it is called.
pub(super) struct Signature {
    pub(super) name: &'static str,
    pub(super) parameters: &'static [(&'static str, Parameter)],
    pub(super) usage: &'static str,
}

pub(super) const SIGNATURES: [Signature; 4] = [
    Signature {
        name: "TUMBLE",
        parameters: &[
            ("DATA", Parameter::Data),
            ("TIMECOL", Parameter::TimeColumn),
            ("SIZE", Parameter::Size),
            ("OFFSET", Parameter::Offset),
        ],
        usage: "TUMBLE(TABLE t, DESCRIPTOR(time_column), INTERVAL size [, INTERVAL offset])",
    },
    Signature {
        name: "HOP",
        parameters: &[
            ("DATA", Parameter::Data),
            ("TIMECOL", Parameter::TimeColumn),
            ("SLIDE", Parameter::Slide),
            ("SIZE", Parameter::Size),
            ("OFFSET", Parameter::Offset),
        ],
        usage: "HOP(TABLE t, DESCRIPTOR(time_column), INTERVAL slide, INTERVAL size [, INTERVAL offset])",
    },
    Signature {
        name: "CUMULATE",
        parameters: &[
            ("DATA", Parameter::Data),
            ("TIMECOL", Parameter::TimeColumn),
            ("STEP", Parameter::Step),
            ("SIZE", Parameter::Size),
            ("OFFSET", Parameter::Offset),
        ],
        usage: "CUMULATE(TABLE t, DESCRIPTOR(time_column), INTERVAL step, INTERVAL size [, INTERVAL offset])",
    },
    Signature {
        name: "SESSION",
        parameters: &[("DATA", Parameter::Data), ("TIMECOL", Parameter::TimeColumn), ("GAP", Parameter::Gap)],
        usage: "SESSION(TABLE t [PARTITION BY (column, ...)], DESCRIPTOR(time_column), INTERVAL gap)",
    },
];

/// Arguments by parameter.
pub(super) struct Arguments<'e> {
    signature: &'static Signature,
    found: Vec<(Parameter, &'e SqlExpr)>,
}

impl<'e> Arguments<'e> {
    /// The argument of a parameter that may be left out.
    pub(super) fn optional(&self, wanted: Parameter) -> Option<&'e SqlExpr> {
        self.found.iter().find(|(parameter, _)| *parameter == wanted).map(|(_, expr)| *expr)
    }

    /// The argument of a parameter.
    pub(super) fn required(&self, wanted: Parameter) -> Result<&'e SqlExpr> {
        self.optional(wanted).ok_or_else(|| {
            let name = self.signature.parameters.iter().find(|(_, parameter)| *parameter == wanted).map_or("", |(name, _)| name);
            Error::new(ErrorKind::InvalidArgument, format!("{} lacks its argument {name}", self.signature.name))
        })
    }
}

impl Signature {
    /// Arguments by parameter, given by position or by name.
    pub(super) fn arguments<'e>(&'static self, args: &'e [FunctionArg]) -> Result<Arguments<'e>> {
        let mut found: Vec<(Parameter, &'e SqlExpr)> = Vec::with_capacity(args.len());
        for (position, arg) in args.iter().enumerate() {
            let (parameter, value) = match arg {
                FunctionArg::Unnamed(value) => (self.parameters.get(position).map(|(_, parameter)| *parameter), value),
                FunctionArg::Named { name, arg, operator: _ } => (self.named(name)?, arg),
                FunctionArg::ExprNamed { name: SqlExpr::Identifier(name), arg, operator: _ } => (self.named(name)?, arg),
                FunctionArg::ExprNamed { name, .. } => return Err(Error::unsupported("a computed argument name").at_node(name)),
            };
            let Some(parameter) = parameter else {
                let message = format!("{} takes at most {} arguments", self.name, self.parameters.len());
                return Err(Error::new(ErrorKind::InvalidArgument, message).with_hint(self.hint()));
            };
            let FunctionArgExpr::Expr(value) = value else {
                return Err(Error::new(ErrorKind::Syntax, format!("{} does not take *", self.name)).with_hint(self.hint()));
            };
            if found.iter().any(|(known, _)| *known == parameter) {
                return Err(Error::new(ErrorKind::InvalidArgument, format!("an argument of {} is given twice", self.name))
                    .at_span(place(value)));
            }
            found.push((parameter, value));
        }
        Ok(Arguments { signature: self, found })
    }

    fn named(&self, name: &ast::Ident) -> Result<Option<Parameter>> {
        let known = self.parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name.value));
        match known {
            Some((_, parameter)) => Ok(Some(*parameter)),
            None => {
                let names: Vec<&str> = self.parameters.iter().map(|(name, _)| *name).collect();
                let message = format!("{} has no argument \"{}\"", self.name, name.value);
                Err(Error::new(ErrorKind::InvalidArgument, message)
                    .with_hint(format!("its arguments are {}", names.join(", ")))
                    .at_span(convert(name.span)))
            }
        }
    }

    fn hint(&self) -> String {
        format!("it is called as {}", self.usage)
    }

    /// An error about an argument, with how the function is called.
    pub(super) fn with_usage(&self, error: Error) -> Error {
        match (error.kind(), error.hint()) {
            (ErrorKind::InvalidArgument, None) => error.with_hint(self.hint()),
            _ => error,
        }
    }
}
