//! Codes as pixels, row by row, so that a large one takes no more memory than its file.

use std::io;

use super::logo::ScaledLogo;
use super::png_file::{PngColours, PngWriter};
use super::{QrLogo, QrSquares, QrStyle};
use crate::colour::{Rgb, WHITE};

/// Where the squares lie among the pixels.
struct Grid<'a> {
    squares: &'a QrSquares,
    size: usize,
    /// Pixels of a square.
    scale: usize,
    /// Pixels before the first square.
    start: usize,
}

impl<'a> Grid<'a> {
    /// Squares have whole pixels; what is left of the size makes the margin larger.
    fn new(squares: &'a QrSquares, style: &QrStyle) -> Self {
        let scale = (style.size / (squares.width + 2 * style.margin)).max(1);
        Self {
            squares,
            size: style.size,
            scale,
            start: (style.size - scale * squares.width) / 2,
        }
    }

    fn square_of(&self, pixel: usize) -> Option<usize> {
        let square = pixel.checked_sub(self.start)? / self.scale;
        (square < self.squares.width).then_some(square)
    }

    fn is_dark(&self, x: usize, y: usize) -> bool {
        match (self.square_of(x), self.square_of(y)) {
            (Some(x), Some(y)) => self.squares.is_dark(x, y),
            _ => false,
        }
    }
}

pub(super) fn draw(
    squares: &QrSquares,
    style: &QrStyle,
    logo: Option<&QrLogo>,
) -> Result<Vec<u8>, io::Error> {
    let grid = Grid::new(squares, style);
    match logo {
        None => two_colours(&grid, style),
        Some(logo) => with_logo(&grid, style, logo),
    }
}

/// One bit for each pixel.
fn two_colours(grid: &Grid<'_>, style: &QrStyle) -> Result<Vec<u8>, io::Error> {
    let light = style.background.unwrap_or(WHITE);
    let colours = PngColours::Two {
        palette: [light.0, style.color.0],
        is_first_clear: style.background.is_none(),
    };
    let mut file = PngWriter::new(grid.size, colours);
    let mut row = vec![0_u8; grid.size.div_ceil(8)];
    for y in 0..grid.size {
        row.fill(0);
        for x in (0..grid.size).filter(|x| grid.is_dark(*x, y)) {
            row[x / 8] |= 0x80 >> (x % 8);
        }
        file.row(&row)?;
    }
    file.finish()
}

/// Four bytes for each pixel, because a logo may have any colours.
fn with_logo(grid: &Grid<'_>, style: &QrStyle, logo: &QrLogo) -> Result<Vec<u8>, io::Error> {
    let (first, width) = grid.squares.logo_box();
    let side = (width - 1) * grid.scale;
    let start = grid.start + first * grid.scale + grid.scale / 2;
    let logo = logo.scaled(side);
    let light = match style.background {
        Some(Rgb([red, green, blue])) => [red, green, blue, u8::MAX],
        None => [u8::MAX, u8::MAX, u8::MAX, 0],
    };
    let Rgb([red, green, blue]) = style.color;
    let dark = [red, green, blue, u8::MAX];
    let is_hidden = |pixel| {
        let square = grid.square_of(pixel);
        square.is_some_and(|square| (first..first + width).contains(&square))
    };
    let mut file = PngWriter::new(grid.size, PngColours::Any);
    let mut row = Vec::with_capacity(grid.size * 4);
    for y in 0..grid.size {
        row.clear();
        for x in 0..grid.size {
            let pixel = if is_hidden(x) && is_hidden(y) {
                over(&logo, (x, y), start, light)
            } else if grid.is_dark(x, y) {
                dark
            } else {
                light
            };
            row.extend_from_slice(&pixel);
        }
        file.row(&row)?;
    }
    file.finish()
}

/// The logo's pixel at that place of the picture, or what is behind it.
fn over(logo: &ScaledLogo, (x, y): (usize, usize), start: usize, behind: [u8; 4]) -> [u8; 4] {
    let pixel = x
        .checked_sub(start)
        .zip(y.checked_sub(start))
        .and_then(|(x, y)| logo.pixel(x, y));
    let Some([red, green, blue, alpha]) = pixel else {
        return behind;
    };
    if behind[3] == 0 {
        return [red, green, blue, alpha];
    }
    let mix = |front: u8, behind: u8| {
        let (front, behind, alpha) = (u16::from(front), u16::from(behind), u16::from(alpha));
        u8::try_from((front * alpha + behind * (255 - alpha)) / 255).unwrap_or(u8::MAX)
    };
    [
        mix(red, behind[0]),
        mix(green, behind[1]),
        mix(blue, behind[2]),
        u8::MAX,
    ]
}
