//! Figures as people read them.

/// Gives three significant digits: `0.00123` as `1.2e-3`, `12.345` as `12.3`, `123456.7` whole.
pub fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if size < 0.01 => format!("{value:.1e}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        size if size < 1e9 => format!("{value:.0}"),
        _ => format!("{value:.2e}"),
    }
}

/// Gives a figure that was counted and not estimated: whole ones without decimals.
pub fn exact(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value}") } else { short(value) }
}

/// As wide as a digit, where digits have one width.
const FIGURE_SPACE: char = '\u{2007}';
/// As wide as a point.
const PUNCTUATION_SPACE: char = '\u{2008}';

/// Pads figures at the end so that their points stand below each other when the column is
/// aligned to the right. What is no plain figure stays as it is.
pub fn align_points(column: &mut [String]) {
    let fraction = |text: &str| {
        let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && !text.is_empty();
        plain.then(|| text.split_once('.').map_or(0, |(_, fraction)| 1 + fraction.len()))
    };
    let Some(widest) = column.iter().filter_map(|text| fraction(text)).max() else { return };
    for text in column {
        if let Some(own) = fraction(text) {
            let mut missing = widest - own;
            if own == 0 && widest > 0 {
                text.push(PUNCTUATION_SPACE);
                missing -= 1;
            }
            text.extend(std::iter::repeat_n(FIGURE_SPACE, missing));
        }
    }
}

/// Writes a count with thin spaces between thousands.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Gives `1 point`, `2 points`.
pub fn plural(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Cuts a text that is too long to be shown, at a character.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(most.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        let shown: Vec<String> = [0.0, 0.001_234, 1.234_5, 12.345, 123.45, 123_456.7, 1.5e12]
            .into_iter()
            .map(short)
            .collect();
        assert_eq!(shown, ["0", "1.2e-3", "1.23", "12.3", "123", "123457", "1.50e12"]);
    }

    #[test]
    fn counts_are_whole() {
        assert_eq!([7.0, 42.5, 0.0].map(exact), ["7", "42.5", "0"]);
    }

    #[test]
    fn points_stand_below_each_other() {
        let mut column = ["1.25", "33", "400.5", "no_pmu", ""].map(str::to_owned);
        align_points(&mut column);
        assert_eq!(column, ["1.25", "33\u{2008}\u{2007}\u{2007}", "400.5\u{2007}", "no_pmu", ""]);
    }

    #[test]
    fn counts_and_cuts() {
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!([plural(1, "line"), plural(12, "line")], ["1 line", "12 lines"]);
        assert_eq!([cut("short", 5), cut("longer", 5)], ["short", "long…"]);
    }
}
