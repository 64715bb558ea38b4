//! Lines of CSV (RFC 4180) that a spreadsheet takes for text and numbers, never for formulas.

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
    let calculated = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let guard = if calculated { "'" } else { "" };
    if field.contains([',', '"', '\r', '\n']) {
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
            ("\tx", "'\tx\r\n"),
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
    }
}
