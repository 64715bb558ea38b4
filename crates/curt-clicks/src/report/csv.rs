//! Lines of CSV (RFC 4180) that a spreadsheet takes for text and numbers, never for formulas.

/// What a spreadsheet begins to calculate at, or drops before it does; the full-width forms are taken for the plain
/// ones where people write with an East Asian input method.
const CALCULATED: [char; 11] = [
    '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];
/// What ends a field, or does where the separator is another one: `;` where the decimal sign is a comma, or a tab.
const SEPARATING: [char; 6] = [',', ';', '\t', '"', '\r', '\n'];

/// Appends one line. Values come from strangers: those that a spreadsheet would calculate get a `'` in front.
pub fn line<'a>(out: &mut String, fields: impl IntoIterator<Item = &'a str>) {
    for (at, field) in fields.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        push_field(out, field);
    }
    out.push_str("\r\n");
}

fn push_field(out: &mut String, field: &str) {
    let guard = if field.starts_with(CALCULATED) {
        "'"
    } else {
        ""
    };
    if field.contains(SEPARATING) {
        out.push('"');
        out.push_str(guard);
        out.push_str(&field.replace('"', "\"\""));
        out.push('"');
    } else {
        out.push_str(guard);
        out.push_str(field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(fields: &[&str]) -> String {
        let mut out = String::new();
        line(&mut out, fields.iter().copied());
        out
    }

    #[test]
    fn formulas_become_text() {
        for (field, text) in [
            ("=1+1", "'=1+1\r\n"),
            ("+1", "'+1\r\n"),
            ("-1", "'-1\r\n"),
            ("@SUM(A1)", "'@SUM(A1)\r\n"),
            ("\tx", "\"'\tx\"\r\n"),
            ("\n=1", "\"'\n=1\"\r\n"),
            ("\u{ff1d}1", "'\u{ff1d}1\r\n"),
            ("\u{ff0b}1", "'\u{ff0b}1\r\n"),
            ("\u{ff0d}1", "'\u{ff0d}1\r\n"),
            ("\u{ff20}A1", "'\u{ff20}A1\r\n"),
            ("\r=1", "\"'\r=1\"\r\n"),
            ("=\"a\",b", "\"'=\"\"a\"\",b\"\r\n"),
            ("a=1", "a=1\r\n"),
        ] {
            assert_eq!(written(&[field]), text);
        }
    }

    #[test]
    fn a_value_cannot_make_columns_or_lines() {
        assert_eq!(
            written(&["a,b", "say \"hi\"", "x\ny", "", "ä"]),
            "\"a,b\",\"say \"\"hi\"\"\",\"x\ny\",,ä\r\n"
        );
        // Nor where another sign separates them.
        assert_eq!(written(&["x;=1+1"]), "\"x;=1+1\"\r\n");
        assert_eq!(written(&["x\t=1+1"]), "\"x\t=1+1\"\r\n");
    }
}
