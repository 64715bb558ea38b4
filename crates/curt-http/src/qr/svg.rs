//! Codes as drawings.

use std::fmt::Write as _;

use data_encoding::BASE64;

use super::{QrLogo, QrSquares, QrStyle};

/// Half a square stays free around a logo.
const LOGO_GAP: f64 = 0.5;

pub(super) fn draw(
    text: &str,
    squares: &QrSquares,
    style: &QrStyle,
    logo: Option<&QrLogo>,
) -> Vec<u8> {
    let all = squares.width + 2 * style.margin;
    let size = style.size;
    let label = escaped(text);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{size}\" height=\"{size}\" viewBox=\"0 0 {all} {all}\" \
         role=\"img\" shape-rendering=\"crispEdges\"><title>QR code of {label}</title>"
    );
    if let Some(background) = style.background {
        let path = format!("<path fill=\"{background}\" d=\"M0 0h{all}v{all}H0z\"/>");
        svg.push_str(&path);
    }
    let hidden = logo.map(|_| squares.logo_box());
    let path = path_of(squares, style.margin, hidden);
    let drawn = format!("<path fill=\"{}\" d=\"{path}\"/>", style.color);
    svg.push_str(&drawn);
    if let (Some(logo), Some((first, width))) = (logo, hidden) {
        let at = square(first + style.margin) + LOGO_GAP;
        let side = square(width) - 2.0 * LOGO_GAP;
        let data = BASE64.encode(logo.file());
        let image = format!(
            "<image x=\"{at}\" y=\"{at}\" width=\"{side}\" height=\"{side}\" href=\"data:image/png;base64,{data}\"/>"
        );
        svg.push_str(&image);
    }
    svg.push_str("</svg>\n");
    svg.into_bytes()
}

#[expect(clippy::cast_precision_loss, reason = "a code has at most 177 squares")]
fn square(number: usize) -> f64 {
    number as f64
}

/// One rectangle for each run of dark squares in a row.
fn path_of(squares: &QrSquares, margin: usize, hidden: Option<(usize, usize)>) -> String {
    let is_hidden = |x: usize, y: usize| {
        hidden.is_some_and(|(first, width)| {
            let within = first..first + width;
            within.contains(&x) && within.contains(&y)
        })
    };
    let mut path = String::new();
    for y in 0..squares.width {
        let mut x = 0;
        while x < squares.width {
            let dark = |x: &usize| squares.is_dark(*x, y) && !is_hidden(*x, y);
            let run = (x..squares.width).take_while(dark).count();
            if run > 0 {
                let (left, top) = (x + margin, y + margin);
                // Writing to a string cannot fail.
                write!(path, "M{left} {top}h{run}v1h-{run}z").ok();
            }
            x += run.max(1);
        }
    }
    path
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
