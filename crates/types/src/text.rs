//! Text from the web on its way to a person.

/// Returns whether a character must not reach a terminal or a log as it is: controls (C0, DEL, C1), which drive the
/// terminal, and the characters that turn the direction of the text around them or break its lines (Unicode's
/// `Bidi_Control` property, and the line and paragraph separators).
#[must_use]
pub const fn is_unprintable(letter: char) -> bool {
    matches!(
        letter,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::is_unprintable;

    #[test]
    fn letters_of_all_scripts_are_printable() {
        assert!(!"aZ é ß 中 ع ا ב 😀 \u{200d}".chars().any(is_unprintable));
        assert!(
            "\u{1b}\u{7}\u{85}\u{9b}\u{202e}\u{2028}"
                .chars()
                .all(is_unprintable)
        );
    }
}
