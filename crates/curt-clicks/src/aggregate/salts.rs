//! Who came, without knowing who: a hash of address and browser under a random key that is thrown away with its day.

use std::hash::Hasher;
use std::net::IpAddr;

use curt_core::Day;
use curt_core::ports::Salt;
use siphasher::sip::SipHasher24;

use crate::record::ClickRecord;

/// Days whose salts are held; a spool that was not read for longer asks for older ones again.
const DAYS_HELD: usize = 8;

/// The salts of the last days.
#[derive(Clone, Debug, Default)]
pub struct Salts(Vec<(Day, SipHasher24)>);

/// The salt of this day is needed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the salt of day {} is not known yet", .0.number())]
pub struct SaltWanted(pub Day);

impl Salts {
    /// Hashes of the day are made with this salt from now on.
    pub fn give(&mut self, day: Day, salt: &Salt) {
        self.0.retain(|(held, _)| *held != day);
        if self.0.len() >= DAYS_HELD {
            self.0.remove(0);
        }
        let mut key = [0; 16];
        key.copy_from_slice(&salt[..16]);
        let mut hasher = SipHasher24::new_with_key(&key);
        hasher.write(&salt[16..]);
        self.0.push((day, hasher));
    }

    /// Forgets the salts of days before `before`: their hashes cannot be made again.
    pub fn forget(&mut self, before: Day) {
        self.0.retain(|(day, _)| *day >= before);
    }

    /// The hash that stands for the visitor on that day.
    pub(super) fn visitor(&self, day: Day, click: &ClickRecord<'_>) -> Result<u64, SaltWanted> {
        let salted = self.0.iter().rev().find(|(held, _)| *held == day);
        let mut hasher = salted.ok_or(SaltWanted(day))?.1;
        match click.address.to_canonical() {
            IpAddr::V4(address) => hasher.write(&address.octets()),
            IpAddr::V6(address) => hasher.write(&address.octets()),
        }
        hasher.write(click.agent);
        Ok(hasher.finish())
    }
}
