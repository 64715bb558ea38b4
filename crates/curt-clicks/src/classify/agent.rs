/// What a user agent says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Of a bot, its own name where it is known.
    pub browser: Box<str>,
    pub system: Box<str>,
    pub device: Device,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    Desktop,
    Mobile,
    Tablet,
    Bot,
    /// Televisions, consoles, and what cannot be told.
    Other,
}

impl Device {
    pub const ALL: [Self; 5] = [
        Self::Desktop,
        Self::Mobile,
        Self::Tablet,
        Self::Bot,
        Self::Other,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Mobile => "mobile",
            Self::Tablet => "tablet",
            Self::Bot => "bot",
            Self::Other => "other",
        }
    }
}
