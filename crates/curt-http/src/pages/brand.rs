//! How an installation looks: its name, its colour, and where visitors of links that are not there are sent.

use http::HeaderValue;
use url::Url;

use super::assets::Asset;

const NAME_CHARS_MAX: usize = 40;
/// What a text must stand out by to be read (WCAG AA).
const CONTRAST_MIN: f64 = 4.5;
/// The backgrounds of `curt.css` that texts in the accent colour stand on.
const LIGHT: [Rgb; 2] = [Rgb([0xfb, 0xf9, 0xf4]), WHITE];
const DARK: [Rgb; 2] = [Rgb([0x16, 0x15, 0x13]), Rgb([0x1f, 0x1d, 0x1a])];
const WHITE: Rgb = Rgb([0xff, 0xff, 0xff]);
const BLACK: Rgb = Rgb([0, 0, 0]);
/// The colour in the icon that is replaced.
const ICON_COLOUR: &str = "#b93a16";

/// What pages can be told, already checked.
#[derive(Clone, Debug)]
pub struct PageSettings {
    pub(super) name: Box<str>,
    pub(super) theme: Option<Theme>,
    pub(super) not_found_url: Option<HeaderValue>,
}

impl Default for PageSettings {
    fn default() -> Self {
        Self {
            name: "curt".into(),
            theme: None,
            not_found_url: None,
        }
    }
}

impl PageSettings {
    /// Sets what pages call this installation.
    pub fn name(mut self, text: &str) -> Result<Self, String> {
        let text = text.trim();
        let length = text.chars().count();
        if !(1..=NAME_CHARS_MAX).contains(&length) || text.chars().any(char::is_control) {
            return Err(format!(
                "must have 1 to {NAME_CHARS_MAX} characters, without line ends"
            ));
        }
        self.name = text.into();
        Ok(self)
    }

    /// Sets the colour of buttons, links and the icon, as `#rrggbb`; empty: curt's own. One for dark pages is derived.
    pub fn accent(mut self, text: &str) -> Result<Self, String> {
        self.theme = match text {
            "" => None,
            text => Some(Theme::new(Rgb::parse(text)?)?),
        };
        Ok(self)
    }

    /// Sets where browsers are sent in place of a page that says 404; empty: nowhere.
    pub fn not_found_url(mut self, text: &str) -> Result<Self, String> {
        if text.is_empty() {
            self.not_found_url = None;
            return Ok(self);
        }
        let wrong = || format!("{text:?} is not an address: write it as https://example.com/page");
        let url = Url::parse(text).map_err(|_| wrong())?;
        if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() {
            return Err(wrong());
        }
        let value = HeaderValue::try_from(url.as_str()).map_err(|_| wrong())?;
        self.not_found_url = Some(value);
        Ok(self)
    }
}

/// The style sheet and the icon in the colour of an installation.
#[derive(Clone, Debug)]
pub(super) struct Theme {
    pub(super) style: Asset,
    pub(super) icon: Asset,
}

impl Theme {
    fn new(accent: Rgb) -> Result<Self, String> {
        let contrast = accent.contrast_to_all(&LIGHT);
        if contrast < CONTRAST_MIN {
            return Err(format!(
                "{accent} is too light to be read on a white page (contrast {contrast:.1}, at least {CONTRAST_MIN} is \
                 needed): choose a darker colour"
            ));
        }
        let dark = accent.lightened_for(&DARK);
        let style = format!(
            ":root{{{}}}\n@media(prefers-color-scheme:dark){{:root{{{}}}}}\n",
            variables(accent, accent.mix(BLACK, 0.2)),
            variables(dark, dark.mix(WHITE, 0.3)),
        );
        let icon = include_str!("../../assets/curt.svg").replace(ICON_COLOUR, &accent.to_string());
        Ok(Self {
            style: Asset::new("theme", "css", "text/css; charset=utf-8", style),
            icon: Asset::new("icon", "svg", "image/svg+xml", icon),
        })
    }
}

fn variables(accent: Rgb, strong: Rgb) -> String {
    let on_accent = if accent.contrast(WHITE) >= accent.contrast(BLACK) {
        WHITE
    } else {
        BLACK
    };
    format!("--accent:{accent};--accent-strong:{strong};--on-accent:{on_accent}")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rgb([u8; 3]);

impl Rgb {
    fn parse(text: &str) -> Result<Self, String> {
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
    fn mix(self, other: Self, share: f64) -> Self {
        let mut mixed = self.0;
        for (channel, other) in mixed.iter_mut().zip(other.0) {
            let (from, to) = (f64::from(*channel), f64::from(other));
            *channel = (from + (to - from) * share).round() as u8;
        }
        Self(mixed)
    }

    /// Relative luminance, by WCAG 2.
    fn luminance(self) -> f64 {
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

    fn contrast(self, other: Self) -> f64 {
        let (a, b) = (self.luminance(), other.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn contrast_to_all(self, backgrounds: &[Self]) -> f64 {
        let contrasts = backgrounds.iter().map(|other| self.contrast(*other));
        contrasts.fold(f64::MAX, f64::min)
    }

    /// Returns the darkest mixture with white that can be read on the backgrounds.
    fn lightened_for(self, backgrounds: &[Self]) -> Self {
        let mixtures = (0..=20).map(|step| self.mix(WHITE, f64::from(step) / 20.0));
        let readable = |colour: &Self| colour.contrast_to_all(backgrounds) >= CONTRAST_MIN;
        mixtures.into_iter().find(readable).unwrap_or(WHITE)
    }
}

impl std::fmt::Display for Rgb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> PageSettings {
        PageSettings::default()
    }

    #[test]
    fn the_backgrounds_are_those_of_the_style_sheet() {
        let css = include_str!("../../assets/curt.css");
        let (light, dark) = css.split_once("prefers-color-scheme: dark").unwrap();
        for (part, [paper, sheet]) in [(light, LIGHT), (dark, DARK)] {
            assert!(part.contains(&format!("--paper: {paper};")), "{paper}");
            assert!(part.contains(&format!("--sheet: {sheet};")), "{sheet}");
        }
        assert!(include_str!("../../assets/curt.svg").contains(ICON_COLOUR));
    }

    #[test]
    fn every_accent_that_is_accepted_can_be_read_light_and_dark() {
        for accent in ["#0a5fb4", "#000000", "#006644", "#7A0019", "#b93a16"] {
            let rgb = Rgb::parse(accent).unwrap();
            let dark = rgb.lightened_for(&DARK);
            assert!(dark.contrast_to_all(&DARK) >= CONTRAST_MIN, "{dark}");
            let theme = settings().accent(accent).unwrap().theme.unwrap();
            let style = theme.style.content.text();
            assert!(style.contains(&format!("--accent:{rgb};")), "{style}");
            assert!(style.contains(&format!("--accent:{dark};")), "{style}");
            assert!(theme.icon.content.text().contains(&rgb.to_string()));
        }
        assert!(settings().accent("").unwrap().theme.is_none());
    }

    #[test]
    fn what_cannot_be_shown_is_refused_with_the_way_out() {
        for (accent, way_out) in [
            ("#ffee00", "darker"),
            ("#ffffff", "darker"),
            ("blue", "write it as"),
            ("#123", "write it as"),
            ("#12345g", "write it as"),
            ("#0a5fb4;}", "write it as"),
        ] {
            let refused = settings().accent(accent).unwrap_err();
            assert!(refused.contains(way_out), "{accent}: {refused}");
        }
        for name in ["", " ", "a\nb", &"x".repeat(41)] {
            assert!(settings().name(name).is_err(), "{name:?}");
        }
        for address in [
            "/help",
            "example.com",
            "ftp://a.example/",
            "https://u@a.example/",
        ] {
            let refused = settings().not_found_url(address).unwrap_err();
            assert!(refused.contains("write it as"), "{address}: {refused}");
        }
        assert!(settings().not_found_url("https://a.example/ä").is_ok());
    }
}
