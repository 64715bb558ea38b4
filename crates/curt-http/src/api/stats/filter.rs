//! Which clicks are meant.

use curt_core::ports::ClickFilter;
use curt_core::{ClickClass, Dimension};

use crate::problem::Problem;

/// By what clicks are filtered besides their class.
const FILTERED: [Dimension; 14] = [
    Dimension::Country,
    Dimension::Browser,
    Dimension::System,
    Dimension::Device,
    Dimension::Referrer,
    Dimension::Language,
    Dimension::ReferrerGroup,
    Dimension::UtmSource,
    Dimension::UtmMedium,
    Dimension::UtmCampaign,
    Dimension::UtmTerm,
    Dimension::UtmContent,
    Dimension::City,
    Dimension::Network,
];

/// What clicks must have, by the values of class and [`FILTERED`].
pub(super) fn filter([class, values @ ..]: [Option<String>; 15]) -> Result<ClickFilter, Problem> {
    let values = FILTERED.into_iter().zip(values);
    Ok(ClickFilter {
        class: class.as_deref().map(named_class).transpose()?,
        values: values
            .filter_map(|(dimension, value)| Some((dimension, value?.into())))
            .collect(),
    })
}

pub(super) fn named_class(name: &str) -> Result<ClickClass, Problem> {
    ClickClass::named(name).ok_or_else(|| {
        Problem::invalid_field("class", "value", "Must be human, bot, prefetch or head.")
    })
}
