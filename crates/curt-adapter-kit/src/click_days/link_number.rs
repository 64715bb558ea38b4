use curt_core::DomainId;

/// The bits of the domain; the generation stands above them.
const DOMAIN_BITS: u32 = 32;

/// The domain and the generation of a link in one number. That of the first generation is the domain alone, which is
/// what was stored before generations were told apart.
pub fn link_number(domain: DomainId, generation: u32) -> i64 {
    let later = u64::from(generation.wrapping_sub(1));
    (later << DOMAIN_BITS | u64::from(domain.0)).cast_signed()
}

/// Reads what [`link_number`] made.
pub fn link_of_number(number: i64) -> (DomainId, u32) {
    let number = number.cast_unsigned();
    let later = (number >> DOMAIN_BITS) as u32;
    (
        DomainId((number & 0xffff_ffff) as u32),
        later.wrapping_add(1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_generation_is_what_was_stored_before() {
        for domain in [0, 7, u32::MAX].map(DomainId) {
            assert_eq!(link_number(domain, 1), i64::from(domain.0));
            for generation in [0, 1, 2, 1 << 31, u32::MAX] {
                let number = link_number(domain, generation);
                assert_eq!(link_of_number(number), (domain, generation));
            }
        }
    }
}
