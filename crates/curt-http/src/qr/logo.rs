//! The picture in the middle of codes.

use super::png_file::PngPicture;

/// Files of this size go into every SVG.
const FILE_BYTES_MAX: usize = 64 * 1_024;
const SIDE_MAX: usize = 1_024;

/// A logo, already read.
#[derive(Clone, Debug)]
pub struct QrLogo {
    file: Box<[u8]>,
    width: usize,
    height: usize,
    /// Red, green, blue and opacity of each pixel.
    pixels: Box<[[u8; 4]]>,
}

impl QrLogo {
    /// Reads a PNG file.
    pub fn parse(file: &[u8]) -> Result<Self, String> {
        if file.len() > FILE_BYTES_MAX {
            let kib = FILE_BYTES_MAX / 1_024;
            return Err(format!(
                "the file is larger than {kib} KiB: make the picture smaller"
            ));
        }
        let wrong = |why: String| format!("the file cannot be used as a PNG picture: {why}");
        let picture = PngPicture::read(file, SIDE_MAX).map_err(wrong)?;
        Ok(Self {
            file: file.into(),
            width: picture.width,
            height: picture.height,
            pixels: picture.pixels.into(),
        })
    }

    pub(super) fn file(&self) -> &[u8] {
        &self.file
    }

    /// The logo as large as it fits into a square of `side` pixels.
    pub(super) fn scaled(&self, side: usize) -> ScaledLogo {
        let longest = self.width.max(self.height);
        let width = (self.width * side / longest).max(1);
        let height = (self.height * side / longest).max(1);
        let source = |at: usize, of: usize, all: usize| {
            let first = at * all / of;
            first..((at + 1) * all / of).max(first + 1)
        };
        let mut pixels = Vec::with_capacity(width * height);
        for y in 0..height {
            for x in 0..width {
                let rows = source(y, height, self.height);
                let columns = source(x, width, self.width);
                let covered = rows.flat_map(|row| {
                    let columns = columns.clone();
                    columns.map(move |column| self.pixels[row * self.width + column])
                });
                pixels.push(average(covered));
            }
        }
        ScaledLogo {
            left: (side - width) / 2,
            top: (side - height) / 2,
            width,
            height,
            pixels,
        }
    }
}

/// A logo in the middle of a square.
pub(super) struct ScaledLogo {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    pixels: Vec<[u8; 4]>,
}

impl ScaledLogo {
    /// The pixel of the square, where the logo has one.
    pub(super) fn pixel(&self, x: usize, y: usize) -> Option<[u8; 4]> {
        let x = x.checked_sub(self.left).filter(|x| *x < self.width)?;
        let y = y.checked_sub(self.top).filter(|y| *y < self.height)?;
        self.pixels.get(y * self.width + x).copied()
    }
}

/// Colours count as much as they can be seen.
fn average(pixels: impl Iterator<Item = [u8; 4]>) -> [u8; 4] {
    let (mut sum, mut opacity, mut count) = ([0_u64; 3], 0_u64, 0_u64);
    for [red, green, blue, alpha] in pixels {
        let alpha = u64::from(alpha);
        for (sum, channel) in sum.iter_mut().zip([red, green, blue]) {
            *sum += u64::from(channel) * alpha;
        }
        opacity += alpha;
        count += 1;
    }
    let byte = |value: u64| u8::try_from(value).unwrap_or(u8::MAX);
    let [red, green, blue] = sum.map(|sum| byte(sum / opacity.max(1)));
    [red, green, blue, byte(opacity / count.max(1))]
}
