//! Strings of records in other languages: nothing that a record says is markup.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Shows a string in HTML, in text as in quoted attributes.
///
/// ```
/// use harness::report::escape::Html;
/// assert_eq!(Html("</b> \"&'").to_string(), "&lt;/b&gt; &quot;&amp;&#39;");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Html<'a>(pub &'a str);

impl fmt::Display for Html<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => f.write_char(visible(c))?,
            }
        }
        Ok(())
    }
}

/// Shows a string in a cell of a Markdown table or in its text.
///
/// ```
/// use harness::report::escape::Markdown;
/// assert_eq!(Markdown("a|b_c\n<i>").to_string(), "a\\|b\\_c &lt;i>");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Markdown<'a>(pub &'a str);

impl fmt::Display for Markdown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '&' => f.write_str("&amp;")?,
                '\n' | '\r' => f.write_char(' ')?,
                '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '~' | '#' | '!' | '$' => {
                    f.write_char('\\')?;
                    f.write_char(c)?;
                }
                c => f.write_char(visible(c))?,
            }
        }
        Ok(())
    }
}

/// Shows a string as a field of comma-separated values by RFC 4180. What a spreadsheet would take
/// for a formula, and is no number, begins with an apostrophe.
///
/// ```
/// use harness::report::escape::Csv;
/// assert_eq!(Csv("plain").to_string(), "plain");
/// assert_eq!(Csv("=1+1").to_string(), "\"'=1+1\"");
/// assert_eq!(Csv("-1.5").to_string(), "-1.5");
/// assert_eq!(Csv("5\" and, more").to_string(), "\"5\"\" and, more\"");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Csv<'a>(pub &'a str);

impl fmt::Display for Csv<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let formula = is_formula(self.0);
        if !formula && !self.0.contains(['"', ',', '\n', '\r']) {
            return f.write_str(self.0);
        }
        f.write_char('"')?;
        if formula {
            f.write_char('\'')?;
        }
        for c in self.0.chars() {
            if c == '"' {
                f.write_char('"')?;
            }
            f.write_char(c)?;
        }
        f.write_char('"')
    }
}

/// Whether a spreadsheet would compute a cell: by its first character, also in its wide form, and
/// also behind white space.
fn is_formula(cell: &str) -> bool {
    let starts = |cell: &str| {
        cell.starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'])
    };
    let number = cell.parse::<f64>().is_ok_and(f64::is_finite);
    !number && (starts(cell.trim_start()) || cell.starts_with(['\t', '\r', '\n']))
}

/// Gives text as a terminal may show it: names from files do nothing to it.
pub fn terminal(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| visible(c) == c) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(visible).collect())
}

/// Control characters, and those that turn the direction of text around, are shown as a mark.
fn visible(c: char) -> char {
    let turns =
        matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    let turns = turns || matches!(c, '\u{fffe}' | '\u{ffff}'); // no characters, and not in XML
    if turns || (c.is_control() && !matches!(c, '\n' | '\t')) { '\u{fffd}' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_strings_stay_text() {
        let hostile = "</script><img src=x onerror=\"alert('1')\">\0\u{202e}";
        let html = Html(hostile).to_string();
        assert!(!html.contains(['<', '>', '"', '\'', '\0', '\u{202e}']), "{html}");
        let markdown = Markdown("| `a` | [x](javascript:1) <b>\n# head").to_string();
        assert!(!markdown.contains("| `") && !markdown.contains('<') && !markdown.contains('\n'));
        assert!(markdown.starts_with("\\|"), "{markdown}");
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(Csv("a\r\nb").to_string(), "\"a\r\nb\"");
        assert_eq!(Csv("").to_string(), "");
    }

    #[test]
    fn spreadsheets_compute_nothing() {
        let formulas = [
            "=1+1",
            "+1+1",
            "-1+1",
            "@SUM(A1)",
            "=cmd|' /C calc'!A0",
            "\t=1",
            "\r=1",
            " =1",
            "-",
            "\u{ff1d}1",
            "-inf",
            "+nan",
            "--1",
            "=HYPERLINK(\"x\")",
        ];
        for formula in formulas {
            let shown = Csv(formula).to_string();
            assert!(shown.starts_with("\"'") && shown.ends_with('"'), "{formula:?}: {shown}");
        }
        for plain in ["-1.5", "+3", "1e-9", "tas", "a=b", "2026-11-30", "1-2"] {
            assert_eq!(Csv(plain).to_string(), plain);
        }
    }
}
