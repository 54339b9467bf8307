//! `VALUES 1, 2`: rows of one column may stand without parentheses. sqlparser wants them, so they are put around such rows before it
//! reads the tokens.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::cursor::is_word;

/// What follows the last row of VALUES outside of all parentheses.
const FOLLOWERS: [&str; 9] = ["UNION", "EXCEPT", "MINUS", "INTERSECT", "ORDER", "LIMIT", "OFFSET", "FETCH", "ON"];

/// Puts parentheses around the rows that have none. Each is placed where the row begins or ends.
pub(super) fn enclose(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let rows = bare_rows(&tokens);
    if rows.is_empty() {
        return tokens;
    }
    let (mut opening, mut closing) = (vec![0; tokens.len()], vec![0; tokens.len()]);
    for row in &rows {
        opening[row.first] += 1;
        closing[row.last] += 1;
    }
    let mut enclosed = Vec::with_capacity(tokens.len() + 2 * rows.len());
    for (index, token) in tokens.into_iter().enumerate() {
        let parenthesis = |kind| TokenWithSpan { token: kind, span: token.span };
        let (before, after) = (parenthesis(Token::LParen), parenthesis(Token::RParen));
        enclosed.extend(std::iter::repeat_n(before, opening[index]));
        enclosed.push(token);
        enclosed.extend(std::iter::repeat_n(after, closing[index]));
    }
    enclosed
}

/// A row by its tokens.
struct Row {
    first: usize,
    last: usize,
}

fn bare_rows(tokens: &[TokenWithSpan]) -> Vec<Row> {
    let mut rows = Vec::new();
    for values in (0..tokens.len()).filter(|index| is_word(&tokens[*index].token, "VALUES")) {
        let mut at = values + 1;
        loop {
            let end = end_of_row(tokens, at);
            let mut row = (at..end).filter(|index| !matches!(tokens[*index].token, Token::Whitespace(_)));
            let Some(first) = row.next() else { break };
            if !has_parentheses(&tokens[first].token) {
                rows.push(Row { first, last: row.next_back().unwrap_or(first) });
            }
            if tokens.get(end).is_none_or(|token| token.token != Token::Comma) {
                break;
            }
            at = end + 1;
        }
    }
    rows
}

fn has_parentheses(first: &Token) -> bool {
    *first == Token::LParen || is_word(first, "ROW")
}

/// Where the row that begins here ends: at a comma, at the end of what VALUES stands in, or before a clause.
fn end_of_row(tokens: &[TokenWithSpan], start: usize) -> usize {
    let mut depth = 0;
    for (index, TokenWithSpan { token, .. }) in tokens.iter().enumerate().skip(start) {
        match token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket if depth > 0 => depth -= 1,
            Token::RParen | Token::RBracket | Token::SemiColon => return index,
            Token::Comma if depth == 0 => return index,
            word if depth == 0 && FOLLOWERS.iter().any(|follower| is_word(word, follower)) => return index,
            _ => {}
        }
    }
    tokens.len()
}
