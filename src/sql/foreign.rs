//! What other databases write, and what says the same here: hints for words at which a statement stops making sense.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::cursor::is_word;

/// Words and symbols that stand in a row, and the hint for them. The error is at one of them.
const PHRASES: &[(&str, &str)] = &[
    ("* EXCEPT (", "name the columns that are wanted: there is no * without some of them"),
    ("* EXCLUDE", "name the columns that are wanted: there is no * without some of them"),
    ("* REPLACE", "name the columns that are wanted, with the expression among them"),
    ("* RENAME", "name the columns that are wanted: SELECT a AS b"),
    ("SELECT TOP", "write LIMIT n at the end of the query"),
    ("LEFT SEMI", "write WHERE EXISTS (SELECT …) or WHERE x IN (SELECT …)"),
    ("LEFT ANTI", "write WHERE NOT EXISTS (SELECT …) or WHERE x NOT IN (SELECT …)"),
    ("SEMI JOIN", "write WHERE EXISTS (SELECT …) or WHERE x IN (SELECT …)"),
    ("ANTI JOIN", "write WHERE NOT EXISTS (SELECT …) or WHERE x NOT IN (SELECT …)"),
    ("ASOF JOIN", "rank the rows of the other table by time, ROW_NUMBER() OVER (…) = 1, in a LATERAL subquery"),
    ("LATERAL VIEW", "write CROSS JOIN UNNEST(x) AS t(y)"),
    ("CLUSTER BY", "how rows are distributed follows from the query; ORDER BY sorts them"),
    ("DISTRIBUTE BY", "how rows are distributed follows from the query"),
    ("SORT BY", "write ORDER BY"),
    ("ASCENDING", "write ASC"),
    ("DESCENDING", "write DESC"),
    ("WITH ROLLUP", "write GROUP BY ROLLUP (…)"),
    ("WITH CUBE", "write GROUP BY CUBE (…)"),
    ("RETURNING", "read the table with a query of its own"),
    ("AS OF", "a table is read as it is now"),
    ("REGEXP", "write x RLIKE 'pattern' or REGEXP(x, 'pattern')"),
    ("ON DUPLICATE", "declare PRIMARY KEY (…) NOT ENFORCED: a sink with a key is written by it"),
    ("ENGINE =", "say where the rows are: WITH ('connector' = '…')"),
    ("STORED AS", "say where the rows are: WITH ('connector' = 'filesystem', 'path' = '…', 'format' = '…')"),
    ("AUTO_INCREMENT", "columns are filled by the query; ROW_NUMBER() OVER (…) numbers rows"),
    ("SET TIME ZONE", "write SET 'table.local-time-zone' = 'Europe/Berlin'"),
    ("OUTER JOIN", "write LEFT, RIGHT or FULL OUTER JOIN"),
    (", MODEL", "there are no models"),
    ("EXTRACT (", "write EXTRACT(DAY FROM t)"),
    ("DIV", "write a / b: of whole numbers it is a whole number"),
    ("XOR", "write a <> b"),
    ("SHOW SETTINGS", "write SET"),
    ("SHOW VARIABLES", "write SET"),
    ("CREATE MATERIALIZED VIEW", "write CREATE TABLE, and INSERT INTO it: that keeps it up to date"),
    ("CREATE INDEX", "tables do not own their data; a query keeps the rows that it looks for by key"),
    ("CREATE EXTERNAL TABLE", "write CREATE TABLE: all tables are external"),
    ("CREATE STREAM", "write CREATE TABLE: all tables are streams"),
    ("CREATE SOURCE", "write CREATE TABLE"),
    ("CREATE SINK", "write CREATE TABLE, and INSERT INTO it"),
    ("EMIT CHANGES", "leave it out: queries give their changes, SET 'sql-client.execution.result-mode' = 'changelog' shows them"),
];

/// Words that start a statement elsewhere.
const STATEMENTS: &[(&str, &str)] = &[
    ("BEGIN", NO_TRANSACTIONS),
    ("START", NO_TRANSACTIONS),
    ("COMMIT", NO_TRANSACTIONS),
    ("ROLLBACK", NO_TRANSACTIONS),
    ("CANCEL", "write STOP JOB 'id'"),
    ("KILL", "write STOP JOB 'id'"),
    ("LIST", "write SHOW"),
    ("FROM", "a query begins with SELECT"),
    ("COPY", "create a table over the files, and INSERT INTO or SELECT FROM it"),
    ("HELP", PROMPT_ONLY),
    ("CLEAR", PROMPT_ONLY),
];

const NO_TRANSACTIONS: &str = "there are no transactions; EXECUTE STATEMENT SET BEGIN … END; runs several INSERTs as one job";
const PROMPT_ONLY: &str = "that is a command of the prompt, and stands alone on its line";

/// The hint for a word that starts no statement here.
pub(super) fn statement_hint(word: &str) -> Option<&'static str> {
    STATEMENTS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word)).map(|(_, hint)| *hint)
}

/// The hint for what other databases have in this place: a phrase around the token number `at`.
pub(super) fn hint(tokens: &[TokenWithSpan], at: usize) -> Option<&'static str> {
    PHRASES.iter().find(|(phrase, _)| stands_around(phrase, tokens, at)).map(|(_, hint)| *hint)
}

/// Whether the words of a phrase stand in a row, one of them at `at` or right before it.
fn stands_around(phrase: &str, tokens: &[TokenWithSpan], at: usize) -> bool {
    let words: Vec<&str> = phrase.split(' ').collect();
    (0..=words.len()).any(|back| {
        let Some(start) = step_back(tokens, at, back) else { return false };
        let mut rest = tokens[start..].iter().filter(|token| !is_blank(&token.token));
        words.iter().all(|word| rest.next().is_some_and(|token| is_written(&token.token, word)))
    })
}

/// The token that stands `steps` before another one; blanks do not count.
fn step_back(tokens: &[TokenWithSpan], at: usize, steps: usize) -> Option<usize> {
    let before = (0..at).rev().filter(|index| !is_blank(&tokens[*index].token));
    std::iter::once(at).chain(before).nth(steps)
}

fn is_written(token: &Token, word: &str) -> bool {
    match token {
        Token::Word(_) => is_word(token, word),
        symbol => symbol.to_string() == word,
    }
}

/// White space and comments.
pub(super) fn is_blank(token: &Token) -> bool {
    matches!(token, Token::Whitespace(_))
}
