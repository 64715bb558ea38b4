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
    /// The colour behind them, `ffffff` unless said otherwise, or `none`. It has to be lighter, with a contrast of 3 and more.
    #[param(
        nullable = false,
        pattern = "^(none|#?[0-9A-Fa-f]{6})$",
        example = "ffffff"
    )]
    background: Option<String>,
    /// How much of the code may be hidden or damaged: `L` 7 %, `M` 15 %, `Q` 25 % or `H` 30 %. `M` unless said otherwise; with a
    /// logo `H` or `Q`.
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

impl QrStyle {
    /// Reads a query. `fixed` is the format where the address names it.
    pub(crate) fn parse(text: &str, fixed: Option<QrFormat>) -> Result<Self, Problem> {
        let names = [
            "format",
            "size",
            "margin",
            "color",
            "background",
            "error_correction",
            "logo",
        ];
        let [format, size, margin, color, background, correction, logo] =
            query::values(text, names)?;
        let mut errors = Vec::new();
        let mut note = |field: &'static str, code, why: String| {
            errors.push(InvalidField::new(field, code, why));
        };
        let format = match (fixed, format.as_deref()) {
            (None, None | Some("svg")) => QrFormat::Svg,
            (None, Some("png")) => QrFormat::Png,
            (None, Some("text")) => QrFormat::Text,
            (Some(fixed), None) => fixed,
            (fixed, Some(_)) => {
                note("format", "value", "Must be svg, png or text.".to_owned());
                fixed.unwrap_or(QrFormat::Svg)
            }
        };
        let mut number = |field, value: Option<String>, (least, most), usual| {
            let Some(value) = value else { return usual };
            let read = query::number(&value).and_then(|number| usize::try_from(number).ok());
            let within = read.filter(|number| (least..=most).contains(number));
            within.unwrap_or_else(|| {
                let why = format!("Must be a number from {least} to {most}.");
                note(field, "value", why);
                usual
            })
        };
        let size = number("size", size, (SIZE_MIN, SIZE_MAX), SIZE_DEFAULT);
        let margin = number("margin", margin, (0, MARGIN_MAX), MARGIN_DEFAULT);
        let mut colour = |field, value: Option<&str>, usual| {
            let Some(value) = value else { return usual };
            let digits = value.strip_prefix('#').unwrap_or(value);
            Rgb::parse(&format!("#{digits}")).unwrap_or_else(|_| {
                let why = "Must be a colour of six hexadecimal digits, such as 1a1a40.";
                note(field, "value", why.to_owned());
                usual
            })
        };
        let color = colour("color", color.as_deref(), BLACK);
        let background = match background.as_deref() {
            Some("none") => None,
            other => Some(colour("background", other, WHITE)),
        };
        // Behind nothing there is most likely paper.
        let behind = background.unwrap_or(WHITE);
        let is_lighter = behind.luminance() > color.luminance();
        if !is_lighter || behind.contrast(color) < CONTRAST_MIN {
            let why = format!(
                "Scanners could not read it: the squares have to be darker than what is behind them, with a contrast of \
                 {CONTRAST_MIN} and more; this one is {:.1}.",
                behind.contrast(color)
            );
            note("color", "contrast", why);
        }
        let correction = match correction.as_deref() {
            Some("L") => Correction::Low,
            None | Some("M") => Correction::Medium,
            Some("Q") => Correction::Quartile,
            Some("H") => Correction::High,
            Some(_) => {
                note(
                    "error_correction",
                    "value",
                    "Must be L, M, Q or H.".to_owned(),
                );
                Correction::Medium
            }
        };
        let logo = match logo.as_deref() {
            None => None,
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(_) => {
                note("logo", "value", "Must be true or false.".to_owned());
                None
            }
        };
        match errors.is_empty() {
            false => Err(Problem::invalid(errors)),
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
