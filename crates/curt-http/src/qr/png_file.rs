//! As much of the PNG format (RFC 2083) as codes and logos need: square pictures are written, small ones read.

use std::io::{self, Read as _, Write as _};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

const SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Each row begins with the filter that it was stored by; this one is none.
const UNFILTERED: u8 = 0;

/// What the pixels of a picture can be.
pub(super) enum PngColours {
    /// One of two, a bit for each pixel.
    Two {
        palette: [[u8; 3]; 2],
        is_first_clear: bool,
    },
    /// Red, green, blue and opacity.
    Any,
}

/// Writes a square picture row by row.
pub(super) struct PngWriter {
    file: Vec<u8>,
    rows: ZlibEncoder<Vec<u8>>,
}

impl PngWriter {
    pub(super) fn new(size: usize, colours: PngColours) -> Self {
        let side = u32::try_from(size).unwrap_or(u32::MAX).to_be_bytes();
        let (depth, kind) = match colours {
            PngColours::Two { .. } => (1, 3),
            PngColours::Any => (8, 6),
        };
        let mut header = [side, side].concat();
        header.extend([depth, kind, 0, 0, 0]);
        let mut file = SIGNATURE.to_vec();
        add_chunk(&mut file, *b"IHDR", &header);
        if let PngColours::Two {
            palette,
            is_first_clear,
        } = colours
        {
            add_chunk(&mut file, *b"PLTE", palette.as_flattened());
            if is_first_clear {
                add_chunk(&mut file, *b"tRNS", &[0]);
            }
        }
        Self {
            file,
            rows: ZlibEncoder::new(Vec::new(), Compression::fast()),
        }
    }

    pub(super) fn row(&mut self, pixels: &[u8]) -> io::Result<()> {
        self.rows.write_all(&[UNFILTERED])?;
        self.rows.write_all(pixels)
    }

    pub(super) fn finish(mut self) -> io::Result<Vec<u8>> {
        let rows = self.rows.finish()?;
        add_chunk(&mut self.file, *b"IDAT", &rows);
        add_chunk(&mut self.file, *b"IEND", &[]);
        Ok(self.file)
    }
}

fn add_chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    file.extend(length.to_be_bytes());
    let start = file.len();
    file.extend(kind);
    file.extend(data);
    let checksum = crc32fast::hash(&file[start..]);
    file.extend(checksum.to_be_bytes());
}

/// A picture that was read.
pub(super) struct PngPicture {
    pub(super) width: usize,
    pub(super) height: usize,
    /// Red, green, blue and opacity of each pixel.
    pub(super) pixels: Vec<[u8; 4]>,
}

impl PngPicture {
    /// Reads a picture of at most `side_max` pixels each way, in colour, eight bits to a channel.
    pub(super) fn read(file: &[u8], side_max: usize) -> Result<Self, String> {
        let mut rest = file
            .strip_prefix(&SIGNATURE)
            .ok_or("it does not begin as one does")?;
        let mut header: Option<Header> = None;
        let mut packed = Vec::new();
        loop {
            let (kind, data, after) = next_chunk(rest).ok_or("it is cut off or damaged")?;
            rest = after;
            match &kind {
                b"IHDR" => header = Some(Header::read(data, side_max)?),
                b"IDAT" => packed.extend_from_slice(data),
                b"IEND" => break,
                _ => {}
            }
        }
        let header = header.ok_or("it has no header")?;
        let pixels = header.unpack(&packed).ok_or("its pixels are damaged")?;
        Ok(Self {
            width: header.width,
            height: header.height,
            pixels,
        })
    }
}

struct Header {
    width: usize,
    height: usize,
    /// Bytes of a pixel.
    channels: usize,
}

impl Header {
    fn read(data: &[u8], side_max: usize) -> Result<Self, String> {
        let [w0, w1, w2, w3, h0, h1, h2, h3, depth, kind, _, _, interlace] = data else {
            return Err("its header is damaged".to_owned());
        };
        let side = |bytes: [u8; 4]| u32::from_be_bytes(bytes) as usize;
        let (width, height) = (side([*w0, *w1, *w2, *w3]), side([*h0, *h1, *h2, *h3]));
        if !(1..=side_max).contains(&width) || !(1..=side_max).contains(&height) {
            return Err(format!(
                "it has {width} × {height} pixels, and may have {side_max} × {side_max}"
            ));
        }
        let channels = match (depth, kind, interlace) {
            (8, 2, 0) => 3,
            (8, 6, 0) => 4,
            _ => {
                let why = "save it in colour (RGB or RGBA) with 8 bits per channel, not interlaced";
                return Err(why.to_owned());
            }
        };
        Ok(Self {
            width,
            height,
            channels,
        })
    }

    fn unpack(&self, packed: &[u8]) -> Option<Vec<[u8; 4]>> {
        let row_bytes = self.width * self.channels;
        let all = (row_bytes + 1) * self.height;
        let mut bytes = Vec::new();
        let limit = u64::try_from(all).ok()?;
        ZlibDecoder::new(packed)
            .take(limit)
            .read_to_end(&mut bytes)
            .ok()?;
        if bytes.len() != all {
            return None;
        }
        let mut above = vec![0; row_bytes];
        let mut pixels = Vec::with_capacity(self.width * self.height);
        for row in bytes.chunks_exact_mut(row_bytes + 1) {
            let (filter, row) = row.split_first_mut()?;
            unfilter(*filter, row, &above, self.channels)?;
            pixels.extend(row.chunks_exact(self.channels).map(|pixel| match pixel {
                [red, green, blue, alpha] => [*red, *green, *blue, *alpha],
                [red, green, blue, ..] => [*red, *green, *blue, u8::MAX],
                _ => [0; 4],
            }));
            above.copy_from_slice(row);
        }
        Some(pixels)
    }
}

/// Each byte is stored as the difference to what its neighbours tell.
fn unfilter(filter: u8, row: &mut [u8], above: &[u8], channels: usize) -> Option<()> {
    for at in 0..row.len() {
        let before = |row: &[u8]| at.checked_sub(channels).map_or(0, |left| row[left]);
        let (left, up, up_left) = (before(row), above[at], before(above));
        let predicted = match filter {
            0 => 0,
            1 => left,
            2 => up,
            3 => left.midpoint(up),
            4 => paeth(left, up, up_left),
            _ => return None,
        };
        row[at] = row[at].wrapping_add(predicted);
    }
    Some(())
}

/// The neighbour that is nearest to left + up - up-left.
fn paeth(left: u8, up: u8, up_left: u8) -> u8 {
    let estimate = i16::from(left) + i16::from(up) - i16::from(up_left);
    let distance = |neighbour: u8| (estimate - i16::from(neighbour)).unsigned_abs();
    if distance(left) <= distance(up) && distance(left) <= distance(up_left) {
        left
    } else if distance(up) <= distance(up_left) {
        up
    } else {
        up_left
    }
}

/// Kind and data of the first chunk, and what follows it. The checksum has to be right.
fn next_chunk(bytes: &[u8]) -> Option<([u8; 4], &[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (checked, rest) = rest.split_at_checked(length.checked_add(4)?)?;
    let (checksum, after) = rest.split_first_chunk::<4>()?;
    let (kind, data) = checked.split_first_chunk::<4>()?;
    (crc32fast::hash(checked) == u32::from_be_bytes(*checksum)).then_some((*kind, data, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture whose rows were stored by all filters.
    fn filtered(pixels: &[[u8; 3]], width: usize) -> Vec<u8> {
        let mut file = SIGNATURE.to_vec();
        let height = pixels.len() / width;
        let side = |side: usize| u32::try_from(side).unwrap().to_be_bytes();
        let mut header = [side(width), side(height)].concat();
        header.extend([8, 2, 0, 0, 0]);
        add_chunk(&mut file, *b"IHDR", &header);
        let mut rows = ZlibEncoder::new(Vec::new(), Compression::default());
        let mut above = vec![0; width * 3];
        for (y, row) in pixels.chunks(width).enumerate() {
            let row = row.as_flattened();
            let filter = u8::try_from(y % 5).unwrap();
            rows.write_all(&[filter]).unwrap();
            for at in 0..row.len() {
                let before = |row: &[u8]| at.checked_sub(3).map_or(0, |left| row[left]);
                let (left, up, up_left) = (before(row), above[at], before(&above));
                let told = [0, left, up, left.midpoint(up), paeth(left, up, up_left)];
                let stored = row[at].wrapping_sub(told[usize::from(filter)]);
                rows.write_all(&[stored]).unwrap();
            }
            above.copy_from_slice(row);
        }
        add_chunk(&mut file, *b"IDAT", &rows.finish().unwrap());
        add_chunk(&mut file, *b"IEND", &[]);
        file
    }

    #[test]
    fn rows_are_read_whatever_filter_they_were_stored_by() {
        let pixels: Vec<[u8; 3]> = (0..70_u32)
            .map(|at| [0, 8, 16].map(|shift| (at.wrapping_mul(2_654_435_761) >> shift) as u8))
            .collect();
        let read = PngPicture::read(&filtered(&pixels, 7), 64).unwrap();
        assert_eq!((read.width, read.height), (7, 10));
        let expected: Vec<_> = pixels.iter().map(|[r, g, b]| [*r, *g, *b, 255]).collect();
        assert_eq!(read.pixels, expected);
    }

    #[test]
    fn what_is_damaged_or_too_large_is_refused() {
        let file = filtered(&[[1, 2, 3]; 12], 4);
        assert!(PngPicture::read(&file, 4).is_ok());
        assert!(PngPicture::read(&file, 3).is_err());
        for end in 0..file.len() {
            assert!(PngPicture::read(&file[..end], 4).is_err(), "{end}");
            let mut damaged = file.clone();
            damaged[end] ^= 1;
            assert!(PngPicture::read(&damaged, 4).is_err(), "{end}");
        }
    }
}
