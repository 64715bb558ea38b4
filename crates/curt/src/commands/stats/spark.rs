//! A series in one line.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One bar for each number, as high as the number is compared to the highest. Nothing is the lowest bar, and something
/// is always higher than nothing.
pub(super) fn line(numbers: &[u64]) -> String {
    let highest = numbers.iter().copied().max().unwrap_or(0);
    let top = BARS.len() as u128 - 1;
    let bar = |number: u64| {
        let height = (u128::from(number) * top).div_ceil(u128::from(highest.max(1)));
        BARS[usize::try_from(height.min(top)).unwrap_or(0)]
    };
    numbers.iter().copied().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_the_numbers() {
        assert_eq!(line(&[0, 1, 2, 3, 4, 5, 6, 7]), "▁▂▃▄▅▆▇█");
        assert_eq!(line(&[0, 1, 1_000_000]), "▁▂█");
        assert_eq!(line(&[0, 0]), "▁▁");
        assert_eq!(line(&[u64::MAX, u64::MAX / 2]), "█▅");
        assert_eq!(line(&[]), "");
    }
}
