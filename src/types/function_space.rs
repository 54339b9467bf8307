//! Where CREATE FUNCTION puts a function: TEMPORARY SYSTEM, TEMPORARY and permanent ones do not share their names.

/// Where a function is kept, in the order in which a call looks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FunctionSpace {
    /// CREATE TEMPORARY SYSTEM FUNCTION.
    TemporarySystem,
    /// CREATE TEMPORARY FUNCTION.
    Temporary,
    /// CREATE FUNCTION.
    Permanent,
}

impl FunctionSpace {
    /// The words of CREATE and DROP before FUNCTION, each followed by a blank.
    pub fn words(self) -> &'static str {
        match self {
            FunctionSpace::TemporarySystem => "TEMPORARY SYSTEM ",
            FunctionSpace::Temporary => "TEMPORARY ",
            FunctionSpace::Permanent => "",
        }
    }
}
