//! Positions in strings counted in characters, fast where a string is ASCII.

/// How many characters.
pub(super) fn count(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// The byte at which the character of this number begins; the end of the text if there is none.
pub(super) fn byte_of(text: &str, index: usize) -> usize {
    if text.is_ascii() {
        return index.min(text.len());
    }
    text.char_indices().nth(index).map_or(text.len(), |(byte, _)| byte)
}

/// The number of the character that begins at a byte.
pub(super) fn index_of(text: &str, byte: usize) -> usize {
    count(&text[..byte])
}

/// The first characters.
pub(super) fn prefix(text: &str, length: usize) -> &str {
    &text[..byte_of(text, length)]
}

/// SUBSTRING: from a position (from 1; from the end if negative), so many characters; none = NULL.
pub(super) fn substring(text: &str, position: i32, length: i32) -> Option<&str> {
    let length = usize::try_from(length).ok()?;
    let start = match position {
        0 => 0,
        1.. => position as usize - 1,
        _ => match count(text).checked_sub(position.unsigned_abs() as usize) {
            Some(start) => start,
            None => return Some(""),
        },
    };
    let rest = &text[byte_of(text, start)..];
    Some(prefix(rest, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substrings_count_characters_from_either_end() {
        assert_eq!(substring("héllo", 2, 3), Some("éll"));
        assert_eq!(substring("hello", -2, 9), Some("lo"));
        assert_eq!(substring("abc", 0, 2), Some("ab"));
        assert_eq!(substring("abc", -5, 3), Some(""));
        assert_eq!(substring("abc", 9, 3), Some(""));
        assert_eq!(substring("abc", 1, -1), None);
    }
}
