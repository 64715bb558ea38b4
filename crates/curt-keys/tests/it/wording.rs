use curt_core::UnwantedWords;
use curt_keys::{KeySettings, Strategy};

use crate::world::{Running, World, small, take};

const KEYS: u64 = 500;

/// Every sixth key or so holds one of these.
fn many_words() -> UnwantedWords {
    let words = ('a'..='z').flat_map(|x| ('a'..='z').map(move |y| format!("a{x}{y}")));
    let words: Vec<String> = words.collect();
    UnwantedWords::new(words.iter().map(String::as_str)).unwrap()
}

/// How many keys of the strategy hold one.
async fn spelled(strategy: Strategy, unwanted: &UnwantedWords) -> usize {
    let world = World::new();
    let settings = KeySettings {
        unwanted: unwanted.clone(),
        ..small(strategy)
    };
    let running = Running::start(settings, world.life()).await;
    let mut spelled = 0;
    for number in 0..KEYS {
        let supplied = take(&running.supply, number).await;
        spelled += usize::from(many_words().are_in(supplied.key.as_str()));
    }
    running.shut().await;
    spelled
}

#[tokio::test]
async fn no_strategy_spells_an_unwanted_word() {
    for strategy in Strategy::ALL {
        let by_chance = spelled(strategy, &UnwantedWords::default()).await;
        assert!(by_chance > 20, "{strategy}: {by_chance}");
        assert_eq!(spelled(strategy, &many_words()).await, 0, "{strategy}");
    }
}
