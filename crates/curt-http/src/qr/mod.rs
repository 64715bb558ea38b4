//! QR codes of short URLs.
//!
//! | file | holds |
//! |---|---|
//! | `style` | what a code can be told, and what would make it unreadable |
//! | `logo` | the picture in the middle |
//! | `svg`, `png` over `png_file`, `text` | the forms in which a code is sent |
//!
//! A style that was accepted gives a code that scanners read: dark on light, with enough contrast, and with strong error
//! correction under a logo.

mod logo;
mod png;
mod png_file;
mod style;
mod svg;
mod text;

use fast_qr::{ECL, QRBuilder};

pub use self::logo::QrLogo;
pub(crate) use self::style::{QrFormat, QrParams, QrStyle};

/// The squares of a side of version 6, the last without a pattern in the middle.
const LOGO_WIDTH_MAX: usize = 41;

/// How much of a damaged code can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Correction {
    Low,
    Medium,
    Quartile,
    High,
}

/// The squares of a code, without the margin.
pub(crate) struct QrSquares {
    width: usize,
    dark: Vec<bool>,
}

impl QrSquares {
    /// Returns `None` for a text that no code has room for: some 1,200 bytes at the strongest correction.
    fn new(text: &str, correction: Correction) -> Option<Self> {
        let level = match correction {
            Correction::Low => ECL::L,
            Correction::Medium => ECL::M,
            Correction::Quartile => ECL::Q,
            Correction::High => ECL::H,
        };
        let code = QRBuilder::new(text).ecl(level).build().ok()?;
        let width = code.size;
        let squares = code.data.iter().take(width * width);
        Some(Self {
            width,
            dark: squares.map(|square| square.value()).collect(),
        })
    }

    /// Returns the squares for a code with a logo, with the strongest correction that leaves the middle free: larger
    /// codes have a pattern there, which some scanners need.
    fn under_logo(text: &str) -> Option<Self> {
        [Correction::High, Correction::Quartile]
            .into_iter()
            .filter_map(|correction| Self::new(text, correction))
            .find(|squares| squares.width <= LOGO_WIDTH_MAX)
    }

    fn is_dark(&self, x: usize, y: usize) -> bool {
        self.dark[y * self.width + x]
    }

    /// The first square of the box that a logo takes, and its width. It is a fifth of the code's, so that a twentieth of the
    /// squares is hidden; a quarter may be missing.
    fn logo_box(&self) -> (usize, usize) {
        // Both are odd, so that the box stands in the middle.
        let width = (self.width * 22 / 100) | 1;
        ((self.width - width) / 2, width)
    }
}

/// A code in the form that it is sent in.
pub(crate) struct QrPicture {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// Why a code cannot be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QrError {
    /// The text is too long.
    TooLong,
    /// A logo would hide what scanners find the squares by.
    TooLongForLogo,
    /// The picture has fewer pixels than the code squares: this many are needed.
    TooSmall(usize),
    /// The encoder failed.
    Encoding,
}

/// Draws the code of `text`.
pub(crate) fn draw(
    text: &str,
    style: &QrStyle,
    logo: Option<&QrLogo>,
) -> Result<QrPicture, QrError> {
    let under_logo = logo.and_then(|_| QrSquares::under_logo(text));
    if under_logo.is_none() && style.logo == Some(true) {
        return Err(QrError::TooLongForLogo);
    }
    let logo = logo.filter(|_| under_logo.is_some());
    let squares = under_logo.or_else(|| QrSquares::new(text, style.correction));
    let squares = squares.ok_or(QrError::TooLong)?;
    let least = squares.width + 2 * style.margin;
    if style.size < least && style.format != QrFormat::Text {
        return Err(QrError::TooSmall(least));
    }
    let (media_type, bytes) = match style.format {
        QrFormat::Svg => ("image/svg+xml", svg::draw(text, &squares, style, logo)),
        QrFormat::Png => {
            let bytes = png::draw(&squares, style, logo).map_err(|_| QrError::Encoding)?;
            ("image/png", bytes)
        }
        QrFormat::Text => ("text/plain; charset=utf-8", text::draw(&squares, style)),
    };
    Ok(QrPicture { media_type, bytes })
}
