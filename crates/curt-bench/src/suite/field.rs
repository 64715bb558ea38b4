//! The servers that redirects are compared on.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;

use super::contender::{Contender, follow_each};
use super::curt::{CacheGauges, Curt, CurtHome};
use super::nginx::{Log, Nginx};
use super::redirects::{
    CURT_SILENT, CURT_SMALL, CURT_USERS, CURT_WRITING, CacheMemory, NGINX_LOG, NGINX_LOG_BUFFERED,
    NGINX_MAP, NGINX_PLAIN,
};
use super::store::PreparedStore;
use super::users;
use super::{Cores, MAP_LINKS, SMALL_CACHE_SHARE, SuiteOptions, say};
use crate::keys::Pick;
use crate::load::Shape;

/// Every role but the one that counts clicks.
pub(super) const ROLES_WITHOUT_CLICKS: [&str; 5] =
    ["redirect", "api", "keygen", "keysync", "purge"];
/// Room for the clicks of all runs, where none are counted meanwhile.
pub(super) const LARGE_SPOOL: &str = "clicks.spool_max=8GiB";
const NO_CAPTURE: &str = "clicks.capture=false";

/// The servers of the comparison, all running, loaded one at a time.
pub(super) struct Field {
    pub(super) curts: Vec<Curt>,
    nginxes: Vec<Nginx>,
    pub(super) contenders: Vec<Contender>,
    pub(super) memory: CacheMemory,
}

impl Field {
    pub(super) fn start(
        options: &SuiteOptions,
        cores: Cores,
        store: &PreparedStore,
    ) -> anyhow::Result<Self> {
        say("==> redirects: starting the servers");
        // The pages of clicks that are being written would count as the cache's.
        let silent = start_cached(options, cores, store, "silent", &[], &[NO_CAPTURE])?;
        let (silent, memory) = silent;
        let roles = &ROLES_WITHOUT_CLICKS;
        let (writing, _) = start_cached(options, cores, store, "writing", roles, &[LARGE_SPOOL])?;
        let with_users = start_with_users(options, cores, store)?;
        let small = start_small(options, cores, store, memory.counted_bytes)?;
        let mut contenders = vec![
            Contender::curt(CURT_SILENT, &silent, store),
            Contender::curt(CURT_WRITING, &writing, store),
            Contender::curt(CURT_USERS, &with_users, store),
            Contender::curt(CURT_SMALL, &small, store),
        ];
        let nginxes = start_nginxes(options, cores, store, &mut contenders)?;
        // The small cache is measured in its steady state; the others get the same head start.
        let head_start = Duration::from_secs_f64(options.seconds);
        for contender in &contenders {
            let load = contender.load(head_start, Shape::Minimal, 0);
            contender.measure(cores, &load)?;
        }
        Ok(Self {
            curts: vec![silent, writing, with_users, small],
            nginxes,
            contenders,
            memory,
        })
    }

    pub(super) fn stop(self) -> anyhow::Result<()> {
        for curt in self.curts {
            curt.stop()?;
        }
        for nginx in self.nginxes {
            nginx.stop()?;
        }
        Ok(())
    }
}

fn start_nginxes(
    options: &SuiteOptions,
    cores: Cores,
    store: &PreparedStore,
    contenders: &mut Vec<Contender>,
) -> anyhow::Result<Vec<Nginx>> {
    let mut nginxes = Vec::new();
    let Some(nginx) = &options.nginx else {
        return Ok(nginxes);
    };
    for (name, folder, log) in [
        (NGINX_PLAIN, "nginx-plain", Log::Off),
        (NGINX_LOG, "nginx-log", Log::On),
        (NGINX_LOG_BUFFERED, "nginx-log-buffered", Log::Buffered),
    ] {
        let plain = Nginx::plain(nginx, &store.folder(folder), cores.server.as_slice(), log)?;
        contenders.push(Contender::nginx(name, &plain, store));
        nginxes.push(plain);
    }
    let mapped = Arc::new(store.keys.prefix(MAP_LINKS));
    let folder = store.folder("nginx-map");
    let map = Nginx::with_map(nginx, &folder, cores.server.as_slice(), &mapped)?;
    contenders.push(Contender {
        pick: Pick::zipf(&mapped),
        keys: mapped,
        target_of: Some(super::target_of),
        ..Contender::nginx(NGINX_MAP, &map, store)
    });
    nginxes.push(map);
    Ok(nginxes)
}

fn owned(settings: &[&str]) -> Vec<String> {
    settings
        .iter()
        .map(|setting| (*setting).to_owned())
        .collect()
}

fn room_for_all() -> Vec<String> {
    owned(&["server.workers=1", "cache.bytes=4GiB"])
}

/// Starts curt with room for every link and follows each link once.
fn start_cached(
    options: &SuiteOptions,
    cores: Cores,
    store: &PreparedStore,
    name: &str,
    roles: &[&str],
    settings: &[&str],
) -> anyhow::Result<(Curt, CacheMemory)> {
    let folder = store.folder(&format!("curt-{name}"));
    let home = CurtHome::new(&options.curt, &folder, &store.copy(name)?)?;
    let settings = [room_for_all(), owned(settings)].concat();
    let server = home.start(roles, &settings, cores.server.as_slice())?;
    say("    following every link once");
    // The first links also fill buffers that do not grow with the cache: what a link takes shows from there on.
    let first = (store.keys.len() / 20).max(1);
    follow_each(cores, &server, &Arc::new(store.keys.prefix(first)))?;
    let (few, resident_before) = (server.cache()?, server.resident_bytes()?);
    follow_each(cores, &server, &store.keys)?;
    let (all, resident_after) = (server.cache()?, server.resident_bytes()?);
    ensure_all_cached(all, store)?;
    let memory = CacheMemory {
        links: all.links,
        counted_bytes: all.bytes / all.links,
        resident_growth_bytes: (resident_after - resident_before)
            / (all.links - few.links).max(1.0),
        resident_before,
        resident_after,
    };
    Ok((server, memory))
}

fn ensure_all_cached(cache: CacheGauges, store: &PreparedStore) -> anyhow::Result<()> {
    ensure!(
        cache.links >= store.keys.len() as f64 * 0.999,
        "only {} of {} links are cached",
        cache.links,
        store.keys.len()
    );
    Ok(())
}

/// Starts curt the same way on a database with users.
fn start_with_users(
    options: &SuiteOptions,
    cores: Cores,
    store: &PreparedStore,
) -> anyhow::Result<Curt> {
    let database = store.copy("users")?;
    users::move_in(&database)?;
    let folder = store.folder("curt-users");
    let home = CurtHome::new(&options.curt, &folder, &database)?;
    let settings = [
        room_for_all(),
        users::settings(&folder)?,
        owned(&[NO_CAPTURE]),
    ]
    .concat();
    let server = home.start(&[], &settings, cores.server.as_slice())?;
    follow_each(cores, &server, &store.keys)?;
    ensure_all_cached(server.cache()?, store)?;
    Ok(server)
}

/// Starts curt with room for a few of the links, by what one link was found to take.
fn start_small(
    options: &SuiteOptions,
    cores: Cores,
    store: &PreparedStore,
    link_bytes: f64,
) -> anyhow::Result<Curt> {
    let home = CurtHome::new(
        &options.curt,
        &store.folder("curt-small"),
        &store.copy("small")?,
    )?;
    let bytes = store.keys.len() as f64 * SMALL_CACHE_SHARE * link_bytes;
    let bytes = format!("cache.bytes={}B", bytes.ceil().max(64.0 * 1_024.0));
    let settings = owned(&["server.workers=1", &bytes, NO_CAPTURE]);
    home.start(&[], &settings, cores.server.as_slice())
}
