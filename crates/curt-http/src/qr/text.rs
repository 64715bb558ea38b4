//! Codes for terminals: two squares in a character, dark ones drawn.

use super::{QrSquares, QrStyle};

pub(super) fn draw(squares: &QrSquares, style: &QrStyle) -> Vec<u8> {
    let all = squares.width + 2 * style.margin;
    let within = style.margin..style.margin + squares.width;
    let is_dark = |x: usize, y: usize| {
        within.contains(&x)
            && within.contains(&y)
            && squares.is_dark(x - style.margin, y - style.margin)
    };
    let mut text = String::with_capacity(all * all * 2);
    for y in (0..all).step_by(2) {
        for x in 0..all {
            text.push(match (is_dark(x, y), is_dark(x, y + 1)) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => ' ',
            });
        }
        text.push('\n');
    }
    text.into_bytes()
}
