use curt_core::{Sketch, SubjectDay};

use super::counts::{Damaged, DayCounts};

/// A day as an engine stores it: in two columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDay {
    pub counts: Vec<u8>,
    pub visitors: Vec<u8>,
}

impl StoredDay {
    pub fn empty() -> Self {
        Self {
            counts: DayCounts::default().encode(),
            visitors: Sketch::new().to_bytes(),
        }
    }

    /// The day with everything that is new about it.
    pub fn plus<'a>(
        &'a self,
        news: impl IntoIterator<Item = &'a SubjectDay>,
    ) -> Result<Self, Damaged> {
        let mut counts = DayCounts::decode(&self.counts)?;
        let mut visitors = Sketch::from_bytes(&self.visitors).map_err(|_| Damaged)?;
        for new in news {
            counts.add(new.day, &new.sums);
            visitors.merge(&new.visitors);
        }
        Ok(Self {
            counts: counts.encode(),
            visitors: visitors.to_bytes(),
        })
    }
}
