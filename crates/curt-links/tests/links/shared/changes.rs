//! What one server changes, as the others see it.

use super::*;

fn change(key: &str) -> LinkChange {
    LinkChange {
        id: id(key),
        revision: Revision::default(),
    }
}

fn long_lived() -> ResolverSettings {
    ResolverSettings {
        entry_ttl: Some(Duration::from_secs(1)),
        confirmed_ttl: Some(Duration::from_secs(60)),
        negative_ttl: Duration::from_secs(1),
        ..ResolverSettings::default()
    }
}

async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_one_server_changes_the_others_drop_at_once_l2() {
    let common = Common::new(Some(Arc::new(MemoryInvalidations::new(64))), false);
    let [writer, reader] = [(); 2].map(|()| common.site(long_lived()));
    settle().await;
    writer.create("a").await;
    assert_eq!(reader.read("a").await, 1);
    reader.resolver.confirm_channel(common.clock.now());
    for version in 2..=20 {
        writer.edit("a", version).await;
        settle().await;
        assert_eq!(reader.read("a").await, version);
    }
    writer.links.delete(own(ANN), "a", None).await.unwrap();
    settle().await;
    assert_eq!(reader.read("a").await, DELETED);
    assert_eq!(reader.read("b").await, 0);
    writer.create("b").await;
    settle().await;
    assert_eq!(
        reader.read("b").await,
        1,
        "a negative answer is dropped, too"
    );
}

/// A message that never came: while the channel was confirmed, the copy lives long, and no longer than that.
#[tokio::test]
async fn without_the_channel_a_copy_ends_within_two_seconds_l2() {
    let common = Common::new(None, false);
    let [writer, reader] = [(); 2].map(|()| common.site(long_lived()));
    writer.create("a").await;
    assert_eq!(reader.read("a").await, 1);
    reader.resolver.confirm_channel(common.clock.now());
    writer.edit("a", 2).await;
    common.clock.advance(Duration::from_millis(999));
    assert_eq!(
        reader.read("a").await,
        1,
        "nobody told it, and the lease goes on"
    );
    common.clock.advance(Duration::from_millis(1));
    assert_eq!(reader.read("a").await, 2);
}

/// The server that changes a link can tell neither the channel nor the cache, which others reach.
#[tokio::test]
async fn a_cache_that_was_not_told_of_a_change_is_believed_for_five_seconds_l2() {
    let common = Common::new(None, true);
    let [first, reader] = [(); 2].map(|()| common.site(long_lived()));
    let writer = common.cut_off().site(long_lived());
    writer.create("a").await;
    assert_eq!(first.read("a").await, 1);
    settle().await;
    writer.edit("a", 2).await;
    common.clock.advance(Duration::from_millis(4_000));
    assert_eq!(reader.read("a").await, 1, "from the cache");
    common.clock.advance(Duration::from_millis(1_000));
    assert_eq!(reader.read("a").await, 2);
    // What the reader has loaded is the cache's by now.
    settle().await;
    common.clock.advance(Duration::from_secs(1));
    assert_eq!(first.read("a").await, 2);
}

/// The same while the reader is told of changes, but not of this one, and after it was told that it may have missed some.
#[tokio::test]
async fn after_a_gap_the_cache_is_believed_only_for_what_was_loaded_later_l2() {
    let channel: Arc<dyn Invalidations> = Arc::new(MemoryInvalidations::new(1));
    let common = Common::new(Some(channel.clone()), true);
    let [first, reader] = [(); 2].map(|()| common.site(long_lived()));
    let writer = common.cut_off().site(long_lived());
    for key in ["a", "b"] {
        writer.create(key).await;
        assert_eq!(first.read(key).await, 1);
        settle().await;
        writer.edit(key, 2).await;
    }
    common.clock.advance(Duration::from_secs(30));
    reader.resolver.confirm_channel(common.clock.now());
    assert_eq!(
        reader.read("a").await,
        1,
        "the channel works, and no change was told"
    );
    // It falls behind: of three messages, only one is kept.
    for _ in 0..3 {
        channel.publish(&[change("other")]).await.unwrap();
    }
    settle().await;
    reader.resolver.confirm_channel(common.clock.now());
    assert_eq!(reader.read("b").await, 2);
}

/// A store whose replica has stopped following.
struct LaggingStore {
    leader: MemoryLinkStore,
    replica: Mutex<Option<Link>>,
}

#[async_trait]
impl LinkStore for LaggingStore {
    async fn insert_if_absent(
        &self,
        links: Vec<Link>,
        token: Option<RequestToken>,
    ) -> PortResult<Vec<Inserted>> {
        self.leader.insert_if_absent(links, token).await
    }

    async fn get(&self, id: &LinkId) -> PortResult<Option<Link>> {
        self.leader.get(id).await
    }

    async fn get_nearby(&self, _: &LinkId) -> PortResult<Option<Link>> {
        Ok(self.replica.lock().unwrap().clone())
    }

    async fn update_at(&self, link: Link, seen: Revision) -> PortResult<ChangeReply> {
        self.leader.update_at(link, seen).await
    }

    async fn hand_over_at(
        &self,
        id: &LinkId,
        seen: Revision,
        owner: OwnerId,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        self.leader.hand_over_at(id, seen, owner, now).await
    }

    async fn delete_at(
        &self,
        id: &LinkId,
        seen: Revision,
        now: UnixMillis,
    ) -> PortResult<ChangeReply> {
        self.leader.delete_at(id, seen, now).await
    }

    async fn spend_click(&self, id: &LinkId, seen: Revision) -> PortResult<SpendReply> {
        self.leader.spend_click(id, seen).await
    }

    async fn clicks_spent(&self, id: &LinkId) -> PortResult<u64> {
        self.leader.clicks_spent(id).await
    }

    async fn ping(&self) -> PortResult<()> {
        self.leader.ping().await
    }
}

#[tokio::test]
async fn a_change_that_was_told_is_seen_although_the_replica_does_not_have_it_l2() {
    let old = link("a");
    let store = Arc::new(LaggingStore {
        leader: MemoryLinkStore::new(),
        replica: Mutex::new(Some(old.clone())),
    });
    store
        .insert_if_absent(vec![old.clone()], None)
        .await
        .unwrap();
    let clock = Arc::new(ManualClock::at(START));
    let metrics = ResolveMetrics::default();
    let resolver = Resolver::new(long_lived(), store.clone(), Arc::default(), clock, metrics);
    let channel: Arc<dyn Invalidations> = Arc::new(MemoryInvalidations::new(64));
    let stop = CancellationToken::new();
    let metrics = InvalidationMetrics::default();
    tokio::spawn(follow(
        resolver.clone(),
        channel.clone(),
        metrics,
        stop.clone(),
    ));
    settle().await;
    let location = || async {
        match resolver.resolve(old.id.as_ref()).await.unwrap() {
            Resolution::Live(link) => link.location().to_owned(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(location().await, old.target.as_str());
    let new = Link {
        target: Target::from_serialised("https://example.com/new").unwrap(),
        ..old.clone()
    };
    let ChangeReply::Changed(change) = store.update_at(new, old.revision).await.unwrap() else {
        panic!("nobody else changes it");
    };
    channel.publish(&[change]).await.unwrap();
    settle().await;
    assert_eq!(location().await, "https://example.com/new");
    stop.cancel();
}

/// A channel that never answers, or fails.
struct NoChannel;

#[async_trait]
impl Invalidations for NoChannel {
    async fn publish(&self, _: &[LinkChange]) -> PortResult<()> {
        std::future::pending().await
    }

    async fn subscribe(&self) -> PortResult<Box<dyn curt_core::ports::InvalidationFeed>> {
        let why = "the channel is away";
        Err(PortError::new(
            ErrorKind::Unavailable,
            "test",
            "subscribe",
            why,
        ))
    }
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_hangs_delays_an_edit_by_a_bounded_time_and_a_create_not_at_all() {
    let common = Common::new(None, false);
    let site = common.site(long_lived());
    let resolver = Resolver::new(
        long_lived(),
        common.store.clone() as Arc<dyn LinkStore>,
        Arc::default(),
        common.clock.clone(),
        ResolveMetrics::default(),
    );
    let settings = PublisherSettings::default();
    let metrics = InvalidationMetrics::default();
    let publisher = Publisher::new(settings.clone(), Some(Arc::new(NoChannel)), None, metrics);
    resolver.publish_by(publisher.clone());
    tokio::spawn(publisher.run(site.stop.clone()));
    let links = Links::new(
        LinkSettings::default(),
        common.store.clone().into(),
        random_supply(Alphabet::Base62, 7),
        Arc::default(),
        resolver,
        common.clock.clone(),
        LinkMetrics::default(),
    );
    let site = Site {
        resolver: site.resolver.clone(),
        links,
        stop: site.stop.clone(),
    };
    let begun = tokio::time::Instant::now();
    site.create("a").await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    site.edit("a", 2).await;
    assert_eq!(begun.elapsed(), settings.wait_max);
}

#[tokio::test]
async fn a_hot_copy_is_loaded_again_before_it_ends() {
    let common = Common::new(None, false);
    let site = common.site(long_lived());
    site.create("a").await;
    assert_eq!(site.read("a").await, 1);
    let mut hits = 0;
    for _ in 0..2_000 {
        common.clock.advance(Duration::from_millis(2));
        hits += u32::from(
            site.resolver
                .cached(named("a"), common.clock.now())
                .is_some(),
        );
        tokio::task::yield_now().await;
    }
    assert!(
        hits > 1_990,
        "{hits} of 2000, though a copy lives for a second"
    );
}
