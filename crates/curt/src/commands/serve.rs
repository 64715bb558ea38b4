use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use clap::Args;
use curt_accounts::AccountServices;
use curt_clicks::capture::Capture;
use curt_core::ClockGuard;
use curt_core::names::event;
use curt_http::server::{DrainReport, RouterServer, Server, probe};
use curt_http::{App, BodyBudget, HttpMetrics, Impact, PublicUrl, Readiness, Scans, admin, api};
use curt_keys::{KeyMetrics, KeySupply};
use curt_links::{
    BlocklistFile, LinkMetrics, LinkPolicy, Links, PurgePorts, Purger, ResolveMetrics, Resolver,
};
use curt_sqlite::Access;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::cli::ConfigArgs;
use crate::clicks::{self, ClickLine, ClickWatchers};
use crate::clock_watch::ClockWatch;
use crate::config::Config;
use crate::health::LinkHealth;
use crate::roles::{self, Role, Roles};
use crate::signals::Signals;
use crate::supervisor::{Phase, Supervisor, phase};
use crate::system_status::ProcessReport;
use crate::telemetry::AccessLogWriter;
use crate::wiring::{Engines, KeyStores, PortErrors, Stores};
use crate::{
    account_tasks, agent, allow_huge_pages, collectors, first_start, health, link_copies,
    lost_database, open_files, preflight, private_files, service_manager, shard_tasks, telemetry,
};

/// Serve links; every role by default, in one process
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  curt serve --set server.listen=0.0.0.0:80 --set server.public_url=https://go.example.com\n  curt serve keygen --config curt.toml     mint keys only, beside other processes"
)]
pub(crate) struct Serve {
    #[command(flatten)]
    config: ConfigArgs,

    /// What this process does; all of it when none is named
    #[arg(value_enum, value_name = "ROLE")]
    roles: Vec<Role>,

    /// Write the addresses to this file once all are listened on (http=…, admin=…)
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut config = Config::load(&self.config)?;
        let roles = Roles::new(self.roles, &config)?;
        preflight::refuse(&config)?;
        let qr_logo = preflight::read_qr_logo(&config)?;
        config.http.pages = config.http.pages.with_qr_logo(qr_logo);
        refuse_taken_addresses(&config, &roles)?;
        telemetry::start(&config.log)?;
        if config.huge_pages {
            allow_huge_pages(true);
        }
        let connections_max = &mut config.http.server.connections_max;
        *connections_max = open_files::fit_connections(*connections_max);
        private_files::tighten(&config);
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(config.api_threads)
            .thread_name("curt-api")
            .enable_all()
            .build()
            .context("could not start the runtime")?
            .block_on(serve(config, roles, self.ready_file))
    }
}

/// Fails where the process could not listen, before anything is opened, so that the reason stands alone.
fn refuse_taken_addresses(config: &Config, roles: &Roles) -> anyhow::Result<()> {
    let public = roles.serve_http().then_some(config.http.server.listen);
    for (setting, address) in [
        (LISTEN, public),
        (ADMIN_LISTEN, config.admin_listen),
        (
            AGENT_LISTEN,
            config.agent_listen.filter(|_| public.is_some()),
        ),
    ] {
        if let Some(address) = address {
            probe(address).map_err(|error| not_listening(setting, address, &error))?;
        }
    }
    Ok(())
}

const LISTEN: &str = "server.listen";
const ADMIN_LISTEN: &str = "server.admin_listen";
const AGENT_LISTEN: &str = "server.agent_listen";

fn not_listening(setting: &str, address: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    let why = preflight::why_not_listening(address, error);
    anyhow::anyhow!("{setting}: {why}; --set {setting}=ADDRESS chooses another")
}

/// The check that fails while the process starts and stops.
const SERVING: &str = "serving";

fn starting() -> Arc<Readiness> {
    let ready = Readiness::new();
    ready.fail(SERVING, Impact::Unavailable, "the process is starting");
    ready
}

/// The parts of a running process.
struct Running {
    engines: Arc<Engines>,
    supply: Arc<KeySupply>,
    supervisor: Supervisor,
    ready: Arc<Readiness>,
    http_metrics: HttpMetrics,
    registry: Arc<Registry>,
    /// What a process has that knows links.
    front: Option<Front>,
    access_log: Option<AccessLogWriter>,
}

struct Front {
    accounts: AccountServices,
    app: Arc<App>,
    /// Until the server takes them.
    captures: Vec<Capture>,
}

async fn serve(config: Config, roles: Roles, ready_file: Option<PathBuf>) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let mut running = match roles.need_links() {
        true => start(&config, &roles).await?,
        false => start_behind(&config, &roles)?,
    };
    let stop = CancellationToken::new();
    let listening = listen(&config, &roles, &mut running, &stop, ready_file.as_deref()).await;
    let mut servers = match listening {
        Ok(servers) => servers,
        Err(error) => {
            stop.cancel();
            abandon(&config, &running.supervisor, &running.supply).await;
            running.engines.close().await;
            return Err(error);
        }
    };
    let ended_early = tokio::select! {
        () = signals.wait(running.access_log.as_ref()) => false,
        () = any_ended(&mut servers) => true,
    };
    service_manager::notify(service_manager::STOPPING);
    let stopped = shut_down(&config, &running, stop, servers).await;
    if let Some(log) = running.access_log.take() {
        log.finish();
    }
    stopped?;
    anyhow::ensure!(!ended_early, "the server ended by itself; the log says why");
    Ok(())
}

/// Ends what a failed start has begun, so that the runtime cuts off nothing that would complain.
async fn abandon(config: &Config, supervisor: &Supervisor, supply: &KeySupply) {
    supervisor.stop(config.http.server.shutdown_grace).await;
    if let Err(failure) = supply.close().await {
        warn!(event = event::STORE_FAILED, %failure, "unused keys not returned");
    }
}

/// Binds and serves what the roles ask for, and says so.
async fn listen(
    config: &Config,
    roles: &Roles,
    running: &mut Running,
    stop: &CancellationToken,
    ready_file: Option<&Path>,
) -> anyhow::Result<Vec<Serving>> {
    let mut addresses = Vec::new();
    let mut servers = Vec::new();
    if let Some(front) = &mut running.front
        && roles.serve_http()
    {
        let captures = std::mem::take(&mut front.captures);
        let agent = start_agent(config, &running.ready, &running.supervisor, &front.app)?;
        let loop_lag = agent.as_ref().map(|agent| agent.loop_lag.clone());
        let server = bind_public(config, front, &running.registry)?
            .with_captures(captures)
            .with_access_log(front.app.access_log.clone())
            .with_loop_lag(loop_lag)
            .with_limits(front.accounts.limits.clone());
        let address = server.local_addr();
        front.app.public.listening_on(address);
        front.app.links.listening_on(address);
        addresses.push(("http", address));
        addresses.extend(agent.map(|agent| ("agent", agent.address)));
        #[expect(
            clippy::disallowed_methods,
            reason = "the command waits for its servers"
        )]
        let serving = tokio::spawn(server.run(stop.clone()));
        servers.push(serving);
    }
    if let Some(listen) = config.admin_listen {
        let admin = bind_admin(config, listen, running)?;
        addresses.push(("admin", admin.local_addr()));
        // It goes on while requests drain, so that a balancer sees "not ready".
        running.supervisor.start("admin", |stop| async move {
            if let Err(error) = admin.run(stop).await {
                warn!(event = event::TASK_FAILED, %error, task = "admin", "the admin port failed");
            }
        });
    }
    announce(&addresses, running, roles, ready_file).await?;
    Ok(servers)
}

fn start_agent(
    config: &Config,
    ready: &Arc<Readiness>,
    supervisor: &Supervisor,
    app: &App,
) -> anyhow::Result<Option<agent::StartedAgent>> {
    let started = config.agent_listen.map(|listen| {
        agent::start(listen, &config.http.server, ready, supervisor, &app.metrics)
            .map_err(|error| not_listening(AGENT_LISTEN, listen, &error))
    });
    started.transpose()
}

async fn start(config: &Config, roles: &Roles) -> anyhow::Result<Running> {
    let mut registry = Registry::default();
    let errors = PortErrors::register(&mut registry);
    collectors::register_process(&mut registry, &config.store);
    lost_database::refuse(config)?;
    let mut stores = Stores::open(config, &roles.description(), errors.clone())?;
    shard_tasks::open_map(config, &mut stores).await?;
    let supervisor = Supervisor::default();
    let supply = open_supply(config, roles, &stores, &mut registry).await?;
    let parts = (supply.clone(), supervisor.clone());
    let started = start_front(config, roles, stores, parts, registry, errors).await;
    if started.is_err() {
        abandon(config, &supervisor, &supply).await;
    }
    started
}

/// Starts everything around links, over the stores and keys that are open.
async fn start_front(
    config: &Config,
    roles: &Roles,
    mut stores: Stores,
    (supply, supervisor): (Arc<KeySupply>, Supervisor),
    mut registry: Registry,
    errors: PortErrors,
) -> anyhow::Result<Running> {
    let policy = Arc::new(LinkPolicy::default());
    let resolver = open_resolver(config, &stores, &policy, &mut registry);
    let link_metrics = LinkMetrics::register(&mut registry);
    let links = Links::new(
        config.links.clone(),
        stores.main.links.clone(),
        supply.clone(),
        policy.clone(),
        resolver.clone(),
        stores.clock.clone(),
        link_metrics.clone(),
    );
    let accounts = stores.account_services(config)?;
    let quotas = stores.quotas.shared.as_ref();
    collectors::register_accounts(&mut registry, &accounts, quotas);
    let (ready, http_metrics) = (starting(), HttpMetrics::register(&mut registry));
    keep_policy(config, &supervisor, &accounts, &policy, &ready).await?;
    let tasks = (&supervisor, &ready);
    link_copies::start(config, &stores, &resolver, tasks, &mut registry);
    let clock_guard = watch_clock(config, &stores, &supervisor, &ready, &mut registry).await;
    account_tasks::start_session_purge(&supervisor, &accounts, &clock_guard);
    let reference = clicks::follow_files(config, roles, &supervisor)?;
    let watchers = ClickWatchers::new(&ready, &clock_guard, &reference);
    let tasks = &supervisor;
    let clicks = ClickLine::start(config, roles, &mut stores, tasks, &mut registry, watchers)?;
    start_keys(config, roles, &supervisor, &supply, &ready);
    if roles.has(Role::Purge) {
        let links = (supply.clone(), resolver.clone());
        let ports = stores.purge_ports(config, clock_guard);
        start_purge(config, &supervisor, ports, links, link_metrics);
    }
    let tasks = (&supervisor, &ready);
    watch_stores(config, &mut stores, errors, tasks, &mut registry)?;
    let (access_log, writer) = telemetry::open_access_log(&config.log, &mut registry)?.unzip();
    let app = Arc::new(App {
        access_log,
        system: OnceLock::new(),
        clicks: clicks.router,
        click_reference: reference,
        click_eraser: clicks.eraser,
        reports: clicks.reports,
        links,
        resolver,
        policy,
        accounts: accounts.clone(),
        clock: stores.clock.clone(),
        settings: config.http.clone(),
        bodies: BodyBudget::new(&config.http.server, http_metrics.clone()),
        metrics: http_metrics.clone(),
        ready: ready.clone(),
        public: PublicUrl::new(config.http.api.public_url.as_deref()),
        scans: Scans::new(config.http.scans),
    });
    let (engines, registry) = describe_to(&app, roles, stores.engines, &supply, registry);
    Ok(Running {
        engines,
        supply,
        supervisor,
        ready,
        http_metrics,
        registry,
        front: Some(Front {
            accounts,
            app,
            captures: clicks.workers,
        }),
        access_log: writer,
    })
}

/// Shows the process to its administrators.
fn describe_to(
    app: &App,
    roles: &Roles,
    engines: Engines,
    supply: &Arc<KeySupply>,
    registry: Registry,
) -> (Arc<Engines>, Arc<Registry>) {
    let (engines, registry) = (Arc::new(engines), Arc::new(registry));
    let process = ProcessReport::new(roles, &engines, supply);
    // Nothing else sets it.
    app.system.set(process.with(Arc::clone(&registry))).ok();
    (engines, registry)
}

fn watch_stores(
    config: &Config,
    stores: &mut Stores,
    errors: PortErrors,
    (supervisor, ready): (&Supervisor, &Arc<Readiness>),
    registry: &mut Registry,
) -> anyhow::Result<()> {
    watch_links(config, stores, errors, supervisor, ready);
    shard_tasks::watch_lone_node(config, stores, supervisor, ready)?;
    watch_nodes(stores, supervisor, ready, registry);
    Ok(())
}

fn watch_nodes(
    stores: &Stores,
    supervisor: &Supervisor,
    ready: &Arc<Readiness>,
    registry: &mut Registry,
) {
    stores.engines.register_host_reads(registry);
    if let Some(router) = &stores.main.router {
        let clock = stores.clock.clone();
        shard_tasks::start(router, clock, supervisor, ready, registry);
    }
}

fn open_resolver(
    config: &Config,
    stores: &Stores,
    policy: &Arc<LinkPolicy>,
    registry: &mut Registry,
) -> Arc<Resolver> {
    Resolver::new(
        config.cache.clone(),
        stores.main.links.store.clone(),
        policy.clone(),
        stores.clock.clone(),
        ResolveMetrics::register(registry),
    )
}

fn start_purge(
    config: &Config,
    supervisor: &Supervisor,
    ports: PurgePorts,
    (supply, resolver): (Arc<KeySupply>, Arc<Resolver>),
    metrics: LinkMetrics,
) {
    let purger = Purger::new(config.purge.clone(), ports, supply, resolver, metrics);
    supervisor.start("purge", |stop| purger.run(stop));
}

async fn watch_clock(
    config: &Config,
    stores: &Stores,
    supervisor: &Supervisor,
    ready: &Arc<Readiness>,
    registry: &mut Registry,
) -> Arc<ClockGuard> {
    let watch = ClockWatch::open(config.clock_guard, stores, ready.clone(), registry).await;
    let guard = watch.guard();
    supervisor.start("clock", |stop| watch.watch(stop));
    guard
}

fn watch_links(
    config: &Config,
    stores: &Stores,
    errors: PortErrors,
    supervisor: &Supervisor,
    ready: &Arc<Readiness>,
) {
    let read_only = stores.read_only.clone();
    supervisor.start("read-only", |stop| read_only.watch(stop));
    let health = LinkHealth {
        links: stores.main.links.store.clone(),
        errors,
        ready: ready.clone(),
        is_shared: config.store.links.kind().is_shared(),
    };
    supervisor.start("health", |stop| health.watch(stop));
}

/// Starts the roles around keys, and watches what they notice.
fn start_keys(
    config: &Config,
    roles: &Roles,
    supervisor: &Supervisor,
    supply: &Arc<KeySupply>,
    ready: &Arc<Readiness>,
) {
    roles::start_keys(roles, &config.store, supervisor, supply);
    let (supply, ready) = (supply.clone(), ready.clone());
    supervisor.start("key-health", |stop| health::watch_keys(supply, ready, stop));
}

/// Keys to give, where links are created; elsewhere only what makes and moves them.
async fn open_supply(
    config: &Config,
    roles: &Roles,
    stores: &Stores,
    registry: &mut Registry,
) -> anyhow::Result<Arc<KeySupply>> {
    let metrics = KeyMetrics::register(registry);
    let (settings, ports) = (config.keys.clone(), stores.keys.clone());
    Ok(match roles.has(Role::Api) {
        true => KeySupply::open(settings, ports, metrics).await?,
        false => KeySupply::open_behind(&settings, ports, metrics)?,
    })
}

/// Starts a process that only makes or moves keys: no links, no accounts, nobody to answer but operators.
fn start_behind(config: &Config, roles: &Roles) -> anyhow::Result<Running> {
    let mut registry = Registry::default();
    let stores = KeyStores::open(config, &roles.description(), Access::Server)?;
    collectors::register_process(&mut registry, &config.store);
    let metrics = KeyMetrics::register(&mut registry);
    let supply = KeySupply::open_behind(&config.keys, stores.keys, metrics)?;
    let supervisor = Supervisor::default();
    let ready = starting();
    health::await_engines(&ready);
    let http_metrics = HttpMetrics::register(&mut registry);
    roles::start_keys(roles, &config.store, &supervisor, &supply);
    let engines = Arc::new(stores.engines);
    let (watched, reported) = (engines.clone(), ready.clone());
    supervisor.start("health", |stop| {
        health::watch_engines(watched, reported, stop)
    });
    Ok(Running {
        engines,
        supply,
        supervisor,
        ready,
        http_metrics,
        registry: Arc::new(registry),
        front: None,
        access_log: None,
    })
}

/// Puts limits and blocklist in force and keeps them up to date. A list that cannot be read at the start is a wrong
/// setting; later, the last good one stays in force.
async fn keep_policy(
    config: &Config,
    supervisor: &Supervisor,
    accounts: &AccountServices,
    policy: &Arc<LinkPolicy>,
    ready: &Arc<Readiness>,
) -> anyhow::Result<()> {
    account_tasks::read_limits(accounts, policy, ready).await?;
    account_tasks::start(supervisor, accounts, policy, ready);
    if let Some(blocklist) = &config.blocklist {
        let file = BlocklistFile::open(&blocklist.path, policy.clone());
        let file = preflight::unusable_blocklist(file)?;
        let every = blocklist.reload;
        supervisor.start("blocklist", |stop| file.watch(every, stop));
    }
    Ok(())
}

fn bind_public(config: &Config, front: &Front, registry: &Arc<Registry>) -> anyhow::Result<Server> {
    let app = &front.app;
    let mut router = api::router(app.clone());
    if config.http.api.metrics_on_main {
        router = router.merge(admin::metrics_route(registry.clone()));
    }
    Server::bind(
        &config.http,
        app.resolver.clone(),
        app.clock.clone(),
        app.metrics.clone(),
        router,
    )
    .map_err(|error| not_listening(LISTEN, config.http.server.listen, &error))
}

fn bind_admin(
    config: &Config,
    listen: SocketAddr,
    running: &Running,
) -> anyhow::Result<RouterServer> {
    let registry = running.registry.clone();
    let router = match &running.front {
        Some(front) => admin::router(front.app.clone(), registry),
        None => admin::router_behind(running.ready.clone(), registry),
    };
    RouterServer::bind(
        listen,
        &config.http.server,
        running.http_metrics.clone(),
        router,
    )
    .map_err(|error| not_listening(ADMIN_LISTEN, listen, &error))
}

/// Tells that the server is ready: first in the log, then to whoever started it, last to programs that wait for the file.
async fn announce(
    addresses: &[(&str, SocketAddr)],
    running: &Running,
    roles: &Roles,
    ready_file: Option<&Path>,
) -> anyhow::Result<()> {
    running.ready.pass(SERVING);
    let lines: String = addresses
        .iter()
        .map(|(name, address)| format!("{name}={address}\n"))
        .collect();
    info!(event = event::SERVER_STARTED, version = env!("CARGO_PKG_VERSION"), addresses = %lines.trim().replace('\n', " "), "serving");
    match &running.front {
        Some(front) if roles.serve_http() => {
            let base = front.app.public.base();
            first_start::show(&running.supervisor, &front.accounts, base).await?;
            println!("curt serves {base}");
        }
        _ => println!("curt runs {roles}"),
    }
    if let Some(path) = ready_file {
        // Written beside and renamed, so that a reader never sees half of it.
        let beside = path.with_extension("new");
        std::fs::write(&beside, &lines)
            .and_then(|()| std::fs::rename(&beside, path))
            .with_context(|| format!("could not write {}", path.display()))?;
    }
    service_manager::notify(service_manager::READY);
    Ok(())
}

type Serving = tokio::task::JoinHandle<std::io::Result<DrainReport>>;

/// Returns when a server has ended without being asked to; never when there is none.
async fn any_ended(servers: &mut [Serving]) {
    match servers.first_mut() {
        Some(server) => {
            if let Err(failure) = server.await {
                warn!(event = event::TASK_FAILED, %failure, task = "http", "the server died");
            }
        }
        None => std::future::pending().await,
    }
}

async fn shut_down(
    config: &Config,
    running: &Running,
    stop: CancellationToken,
    servers: Vec<Serving>,
) -> anyhow::Result<()> {
    let grace = config.http.server.shutdown_grace;
    phase(Phase::NotReady, async {
        let reason = "the process is stopping";
        running.ready.fail(SERVING, Impact::Unavailable, reason);
    })
    .await;
    phase(Phase::DrainRequests, async {
        stop.cancel();
        for server in servers.into_iter().filter(|server| !server.is_finished()) {
            if let Ok(Ok(drained)) = server.await
                && drained.cut > 0
            {
                warn!(
                    cut = drained.cut,
                    "requests were cut off at the end of the grace period"
                );
            }
        }
    })
    .await;
    phase(Phase::StopTasks, running.supervisor.stop(grace)).await;
    let returned = phase(Phase::ReturnKeys, running.supply.close()).await;
    phase(Phase::CloseStores, running.engines.close()).await;
    returned.context("could not return unused keys; the next start finds them")?;
    info!(event = event::SERVER_STOPPED, "stopped");
    Ok(())
}
