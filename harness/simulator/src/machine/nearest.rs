//! The known word that is nearest to a mistyped one.

/// Gives the nearest of the words, if one is near enough to be meant.
pub(super) fn nearest<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let typed: Vec<char> = typed.chars().take(100).collect();
    known
        .into_iter()
        .map(|word| (edits(&typed, word), word))
        .filter(|(edits, word)| *edits * 2 <= word.len().max(4))
        .min()
        .map(|(_, word)| word)
}

/// Counts the insertions, deletions and replacements from one word to the other.
fn edits(typed: &[char], word: &str) -> usize {
    let mut row: Vec<usize> = (0..=typed.len()).collect();
    for (above, letter) in word.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for column in 0..typed.len() {
            let replaced = diagonal + usize::from(typed[column] != letter);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[typed.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_what_is_meant_and_nothing_else() {
        let known = ["epyc-7742-2s", "epyc-9654-2s", "graviton2"];
        assert_eq!(nearest("epyc-7724-2s", known), Some("epyc-7742-2s"));
        assert_eq!(nearest("epyc-7742", known), Some("epyc-7742-2s"));
        assert_eq!(nearest("gravitron2", known), Some("graviton2"));
        assert_eq!(nearest("a pot of tea", known), None);
        assert_eq!(nearest("", known), None);
    }
}
