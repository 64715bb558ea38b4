//! How an installation looks: its name, its colour, and where visitors of links that are not there are sent.

use std::sync::Arc;

use http::HeaderValue;
use url::Url;

use super::assets::Asset;
use crate::colour::{BLACK, Rgb, WHITE};
use crate::qr::QrLogo;

const NAME_CHARS_MAX: usize = 40;
/// What a text must stand out by to be read (WCAG AA).
const CONTRAST_MIN: f64 = 4.5;
/// The backgrounds of `curt.css` that texts in the accent colour stand on.
const LIGHT: [Rgb; 2] = [Rgb([0xfb, 0xf9, 0xf4]), WHITE];
const DARK: [Rgb; 2] = [Rgb([0x16, 0x15, 0x13]), Rgb([0x1f, 0x1d, 0x1a])];
/// The colour in the icon that is replaced.
const ICON_COLOUR: &str = "#b93a16";

/// What pages can be told, already checked.
#[derive(Clone, Debug)]
pub struct PageSettings {
    pub(super) name: Box<str>,
    pub(super) theme: Option<Theme>,
    pub(super) not_found_url: Option<HeaderValue>,
    qr_logo: Option<Arc<QrLogo>>,
    /// Whether `/{key}+` shows where a link leads.
    pub(crate) preview: bool,
}

impl Default for PageSettings {
    fn default() -> Self {
        Self {
            name: "curt".into(),
            theme: None,
            not_found_url: None,
            qr_logo: None,
            preview: false,
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

impl PageSettings {
    /// Sets what stands in the middle of QR codes.
    #[must_use]
    pub fn with_qr_logo(mut self, logo: Option<QrLogo>) -> Self {
        self.qr_logo = logo.map(Arc::new);
        self
    }

    /// Sets whether visitors can see where a link leads before they follow it.
    #[must_use]
    pub fn with_preview(mut self, preview: bool) -> Self {
        self.preview = preview;
        self
    }

    pub(crate) fn qr_logo(&self) -> Option<&QrLogo> {
        self.qr_logo.as_deref()
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
        let dark = accent.lightened_for(&DARK, CONTRAST_MIN);
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
            let dark = rgb.lightened_for(&DARK, CONTRAST_MIN);
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
