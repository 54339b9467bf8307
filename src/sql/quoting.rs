//! Names in SQL text: put in back-ticks where the text is shown again.

use sqlparser::tokenizer::Token;

use super::cursor::span_of;
use super::dialect::FlinkDialect;
use super::lexer::Script;

/// A name in back-ticks.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A string literal.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The text of an expression as Flink shows it: names of columns in back-ticks, one blank for any white space, no comments.
pub fn with_quoted_columns(sql: &str, is_column: impl Fn(&str) -> bool) -> String {
    let dialect = FlinkDialect::new(true);
    let Ok(script) = Script::new(sql, &dialect) else {
        return sql.to_string();
    };
    let mut shown = String::with_capacity(sql.len() + 16);
    let mut previous: Option<&Token> = None;
    let mut blank = false;
    for (index, token) in script.tokens.iter().enumerate() {
        let Token::Word(word) = &token.token else {
            match &token.token {
                Token::Whitespace(_) => blank = true,
                other => {
                    push(&mut shown, &mut blank, script.slice(span_of(token.span)));
                    previous = Some(other);
                }
            }
            continue;
        };
        // A unit behind the text of an interval, the name of a function, a word that is no column: as they are.
        let is_unit = matches!(previous, Some(Token::SingleQuotedString(_)));
        let is_call =
            script.tokens[index + 1..].iter().map(|next| &next.token).find(|next| !matches!(next, Token::Whitespace(_)))
                == Some(&Token::LParen);
        let is_field = previous == Some(&Token::Period);
        if word.quote_style.is_some() || (!is_unit && !is_call && (is_field || is_column(&word.value))) {
            push(&mut shown, &mut blank, &quoted(&word.value));
        } else {
            push(&mut shown, &mut blank, &word.value);
        }
        previous = Some(&token.token);
    }
    shown
}

fn push(shown: &mut String, blank: &mut bool, text: &str) {
    if std::mem::take(blank) && !shown.is_empty() {
        shown.push(' ');
    }
    shown.push_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_quoted_and_other_words_are_not() {
        let is_column = |name: &str| ["ts", "day", "second", "r"].contains(&name);
        let shown = |sql: &str| with_quoted_columns(sql, is_column);
        assert_eq!(shown("ts -  INTERVAL '5' second\n"), "`ts` - INTERVAL '5' second");
        assert_eq!(
            shown("CASE WHEN day > 1 /* x */ THEN r.a.`b c` ELSE second(ts) END"),
            "CASE WHEN `day` > 1 THEN `r`.`a`.`b c` ELSE second(`ts`) END"
        );
        assert_eq!(shown("'it''s' || UPPER(\"ts\")"), "'it''s' || UPPER(`ts`)");
    }
}
