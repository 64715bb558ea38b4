use std::time::Duration;

const PAUSE_MIN: u64 = 2;
const PAUSE_MAX: u64 = 30;

/// Waits a short random time, so that those who got into each other's way do not meet again.
pub async fn pause() {
    let millis = rand::random_range(PAUSE_MIN..=PAUSE_MAX);
    tokio::time::sleep(Duration::from_millis(millis)).await;
}
