use super::Code;

/// The primary subtag of the language that an `Accept-Language` field prefers: the first of those with the highest
/// quality.
pub(super) fn preferred(field: &[u8]) -> Code {
    let mut best = (0, Code::UNKNOWN);
    for item in field.split(|&byte| byte == b',') {
        let mut parts = item.split(|&byte| byte == b';');
        let tag = parts.next().unwrap_or_default().trim_ascii();
        let primary = tag.split(|&byte| byte == b'-').next().unwrap_or_default();
        let code = Code::parse(primary);
        let quality = parts.next().map_or(QUALITY_WHOLE, quality);
        if code != Code::UNKNOWN && quality > best.0 {
            best = (quality, code.to_lowercase());
        }
        if best.0 == QUALITY_WHOLE {
            break;
        }
    }
    best.1
}

const QUALITY_WHOLE: u32 = 1_000;

/// Thousandths of `q=0.5`; what cannot be read counts as the lowest that is not a refusal.
fn quality(parameter: &[u8]) -> u32 {
    let Some(number) = parameter.trim_ascii().strip_prefix(b"q=") else {
        return 1;
    };
    match number {
        [b'1', ..] => QUALITY_WHOLE,
        [b'0', b'.', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => (0..3)
            .map(|place| digits.get(place).map_or(0, |digit| u32::from(digit - b'0')))
            .fold(0, |thousandths, digit| thousandths * 10 + digit),
        [b'0'] => 0,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_language_is_named_by_its_primary_subtag() {
        for (field, language) in [
            ("en-US,en;q=0.9", "en"),
            ("DE", "de"),
            ("fr;q=0.3, pt-BR;q=0.8, pt;q=0.8", "pt"),
            ("de;q=0, nl;q=0.1", "nl"),
            ("*", "unknown"),
            ("*, gsw", "gsw"),
            ("zh-Hant-TW", "zh"),
            ("sv ; q=1.0, da", "sv"),
            ("", "unknown"),
            ("de;q=0", "unknown"),
            ("<script>", "unknown"),
            ("x-klingon", "unknown"),
            ("es;q=high", "es"),
            (",,;;==,it", "it"),
        ] {
            assert_eq!(preferred(field.as_bytes()).as_str(), language, "{field}");
        }
    }
}
