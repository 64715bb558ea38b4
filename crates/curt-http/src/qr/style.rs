//! What a code can be told.

use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::Correction;
use crate::api::query;
use crate::colour::{BLACK, Rgb, WHITE};
use crate::problem::{InvalidField, Problem};

const SIZE_MIN: usize = 32;
const SIZE_MAX: usize = 2_048;
const SIZE_DEFAULT: usize = 320;
const MARGIN_MAX: usize = 16;
/// As the standard asks for.
const MARGIN_DEFAULT: usize = 4;
/// Scanners tell colours apart by brightness alone; cameras and prints take a part of it away.
const CONTRAST_MIN: f64 = 3.0;

// The parameters below can hold only literal numbers.
const _: () = assert!(SIZE_MIN == 32 && SIZE_MAX == 2_048 && MARGIN_MAX == 16);

/// The parameters as the OpenAPI document shows them; [`QrStyle::parse`] reads them.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(
    dead_code,
    reason = "only the documentation is generated from the fields"
)]
pub(crate) struct QrParams {
    /// `svg` unless said otherwise; `text` is for terminals.
    #[param(inline, nullable = false)]
    format: Option<QrFormat>,
    /// Width and height in pixels; 320 unless said otherwise. At least one for each square of the code and its margin.
    #[param(nullable = false, minimum = 32, maximum = 2_048, example = 320)]
    size: Option<u16>,
    /// The empty border, in squares of the code; 4 unless said otherwise, which scanners may need.
    #[param(nullable = false, minimum = 0, maximum = 16, example = 4)]
    margin: Option<u16>,
    /// The colour of the squares, `000000` unless said otherwise.
    #[param(nullable = false, pattern = "^#?[0-9A-Fa-f]{6}$", example = "1a1a40")]
    color: Option<String>,
    /// The colour behind them, `ffffff` unless said otherwise, or `none`. It has to be lighter, with a contrast
    /// of 3 and more.
    #[param(
        nullable = false,
        pattern = "^(none|#?[0-9A-Fa-f]{6})$",
        example = "ffffff"
    )]
    background: Option<String>,
    /// How much of the code may be hidden or damaged: `L` 7 %, `M` 15 %, `Q` 25 % or `H` 30 %. `M` unless said
    /// otherwise; with a logo `H` or `Q`.
    #[param(inline, nullable = false)]
    error_correction: Option<CorrectionName>,
    /// Whether the server's logo stands in the middle; if it has one and the short URL is not
    /// longer than 74 bytes, unless said otherwise.
    #[param(nullable = false, example = false)]
    logo: Option<bool>,
}

/// How a code is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum QrFormat {
    Svg,
    Png,
    Text,
}

#[derive(Clone, Copy, Serialize, ToSchema)]
#[schema(as = ErrorCorrection)]
#[expect(dead_code, reason = "only the documentation is generated from it")]
pub(crate) enum CorrectionName {
    L,
    M,
    Q,
    H,
}

/// How a code looks, already checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QrStyle {
    pub(super) format: QrFormat,
    pub(super) size: usize,
    pub(super) margin: usize,
    pub(super) color: Rgb,
    /// `None`: nothing is drawn behind the squares.
    pub(super) background: Option<Rgb>,
    pub(super) correction: Correction,
    /// `None`: whatever the server has.
    pub(crate) logo: Option<bool>,
}

/// Reads parameters, and notes all that are wrong.
#[derive(Default)]
struct StyleReader {
    errors: Vec<InvalidField>,
}

impl StyleReader {
    fn note(&mut self, field: &'static str, code: &'static str, why: String) {
        self.errors.push(InvalidField::new(field, code, why));
    }

    fn number(
        &mut self,
        field: &'static str,
        value: Option<&str>,
        (least, most): (usize, usize),
        usual: usize,
    ) -> usize {
        let Some(value) = value else { return usual };
        let read = query::number(value).and_then(|number| usize::try_from(number).ok());
        let within = read.filter(|number| (least..=most).contains(number));
        within.unwrap_or_else(|| {
            let why = format!("Must be a number from {least} to {most}.");
            self.note(field, "value", why);
            usual
        })
    }

    fn colour(&mut self, field: &'static str, value: Option<&str>, usual: Rgb) -> Rgb {
        let Some(value) = value else { return usual };
        let digits = value.strip_prefix('#').unwrap_or(value);
        Rgb::parse(&format!("#{digits}")).unwrap_or_else(|_| {
            let why = "Must be a colour of six hexadecimal digits, such as 1a1a40.";
            self.note(field, "value", why.to_owned());
            usual
        })
    }

    fn one_of<T: Copy>(
        &mut self,
        field: &'static str,
        value: Option<&str>,
        named: &[(&str, T)],
        usual: T,
    ) -> T {
        let Some(value) = value else { return usual };
        let found = named.iter().find(|(name, _)| *name == value);
        found.map_or_else(
            || {
                let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
                let why = match names.is_empty() {
                    true => "The address says which: leave this out.".to_owned(),
                    false => format!("Must be one of: {}.", names.join(", ")),
                };
                self.note(field, "value", why);
                usual
            },
            |(_, value)| *value,
        )
    }

    /// Refuses colours that scanners cannot tell apart.
    fn contrast(&mut self, color: Rgb, background: Option<Rgb>) {
        // Behind nothing there is most likely paper.
        let behind = background.unwrap_or(WHITE);
        let is_lighter = behind.luminance() > color.luminance();
        if !is_lighter || behind.contrast(color) < CONTRAST_MIN {
            let why = format!(
                "Scanners could not read it: the squares have to be darker than what is behind them, with a contrast of \
                 {CONTRAST_MIN} and more; this one is {:.1}.",
                behind.contrast(color)
            );
            self.note("color", "contrast", why);
        }
    }
}

const PARAMETERS: [&str; 7] = [
    "format",
    "size",
    "margin",
    "color",
    "background",
    "error_correction",
    "logo",
];

const FORMATS: &[(&str, QrFormat)] = &[
    ("svg", QrFormat::Svg),
    ("png", QrFormat::Png),
    ("text", QrFormat::Text),
];

const CORRECTIONS: &[(&str, Correction)] = &[
    ("L", Correction::Low),
    ("M", Correction::Medium),
    ("Q", Correction::Quartile),
    ("H", Correction::High),
];

impl QrStyle {
    /// Reads a query. `fixed` is the format where the address names it.
    pub(crate) fn parse(text: &str, fixed: Option<QrFormat>) -> Result<Self, Problem> {
        let [format, size, margin, color, background, correction, logo] =
            query::values(text, PARAMETERS)?;
        let mut reader = StyleReader::default();
        let formats = if fixed.is_some() { &[] } else { FORMATS };
        let usual = fixed.unwrap_or(QrFormat::Svg);
        let format = reader.one_of("format", format.as_deref(), formats, usual);
        let sizes = (SIZE_MIN, SIZE_MAX);
        let size = reader.number("size", size.as_deref(), sizes, SIZE_DEFAULT);
        let margins = (0, MARGIN_MAX);
        let margin = reader.number("margin", margin.as_deref(), margins, MARGIN_DEFAULT);
        let color = reader.colour("color", color.as_deref(), BLACK);
        let background = match background.as_deref() {
            Some("none") => None,
            other => Some(reader.colour("background", other, WHITE)),
        };
        reader.contrast(color, background);
        let correction = correction.as_deref();
        let correction = reader.one_of(
            "error_correction",
            correction,
            CORRECTIONS,
            Correction::Medium,
        );
        let answers = [("true", Some(true)), ("false", Some(false))];
        let logo = reader.one_of("logo", logo.as_deref(), &answers, None);
        match reader.errors.is_empty() {
            false => Err(Problem::invalid(reader.errors)),
            true => Ok(Self {
                format,
                size,
                margin,
                color,
                background,
                correction,
                logo,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_not_be_read_is_refused() {
        for (query, refused) in [
            ("size=31", "size/value"),
            ("size=2049", "size/value"),
            ("size=+64", "size/value"),
            ("margin=17", "margin/value"),
            ("color=red", "color/value"),
            ("color=00000", "color/value"),
            ("background=%23fff", "background/value"),
            ("color=ffffff&background=000000", "color/contrast"),
            ("color=ff0000&background=ff0000", "color/contrast"),
            ("color=ffff00", "color/contrast"),
            ("color=ffff00&background=none", "color/contrast"),
            ("error_correction=m", "error_correction/value"),
            ("logo=1", "logo/value"),
            ("format=gif", "format/value"),
            ("colour=000000", "colour/unknown"),
            ("size=64&size=64", "size/duplicate"),
        ] {
            let problem = QrStyle::parse(query, None).unwrap_err();
            let error = &problem.errors()[0];
            assert_eq!(
                format!("{}/{}", error.field, error.code),
                refused,
                "{query}"
            );
        }
        let named = QrStyle::parse("format=svg", Some(QrFormat::Png));
        assert!(named.is_err(), "the address says which");
    }

    #[test]
    fn nothing_said_is_black_on_white() {
        let usual = QrStyle::parse("", None).unwrap();
        assert_eq!((usual.size, usual.margin), (320, 4));
        assert_eq!((usual.color, usual.background), (BLACK, Some(WHITE)));
        let chosen = QrStyle::parse("color=%231A1a40&background=none&margin=0", None).unwrap();
        assert_eq!(chosen.color, Rgb([0x1a, 0x1a, 0x40]));
        assert_eq!((chosen.background, chosen.margin), (None, 0));
    }
}
