//! Colours, and whether they can be told apart.

pub(crate) const WHITE: Rgb = Rgb([0xff, 0xff, 0xff]);
pub(crate) const BLACK: Rgb = Rgb([0, 0, 0]);

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rgb(pub(crate) [u8; 3]);

impl Rgb {
    /// Reads `#rrggbb`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a colour: write it as \"#0a5fb4\"");
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
        let bytes = data_encoding::HEXLOWER_PERMISSIVE
            .decode(digits.ok_or_else(wrong)?.as_bytes())
            .map_err(|_| wrong())?;
        bytes.try_into().map(Self).map_err(|_| wrong())
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between two values of a byte"
    )]
    pub(crate) fn mix(self, other: Self, share: f64) -> Self {
        let mut mixed = self.0;
        for (channel, other) in mixed.iter_mut().zip(other.0) {
            let (from, to) = (f64::from(*channel), f64::from(other));
            *channel = (from + (to - from) * share).round() as u8;
        }
        Self(mixed)
    }

    /// Relative luminance, by WCAG 2.
    pub(crate) fn luminance(self) -> f64 {
        let [red, green, blue] = self.0.map(|channel| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.040_45 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// How much two colours stand out from each other, by WCAG 2: 1 to 21.
    pub(crate) fn contrast(self, other: Self) -> f64 {
        let (a, b) = (self.luminance(), other.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    pub(crate) fn contrast_to_all(self, backgrounds: &[Self]) -> f64 {
        let contrasts = backgrounds.iter().map(|other| self.contrast(*other));
        contrasts.fold(f64::MAX, f64::min)
    }

    /// Returns the darkest mixture with white that stands out by `contrast` from the backgrounds.
    pub(crate) fn lightened_for(self, backgrounds: &[Self], contrast: f64) -> Self {
        let mixtures = (0..=20).map(|step| self.mix(WHITE, f64::from(step) / 20.0));
        let readable = |colour: &Self| colour.contrast_to_all(backgrounds) >= contrast;
        mixtures.into_iter().find(readable).unwrap_or(WHITE)
    }
}

impl std::fmt::Display for Rgb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}
