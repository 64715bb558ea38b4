use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{Lease, Leases};
use redis::Script;

use super::Redis;

/// Acquires a free lease. Fencing tokens are the server's time in microseconds, or one more than the last where that
/// is not later: a mere counter would start over when the data is lost or a fail-over forgets the latest.
const ACQUIRE: &str = r"
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    return false
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('GET', KEYS[2]) or 0)
local token = string.format('%.0f', math.max(now, last + 1))
redis.call('SET', KEYS[2], token)
return token
";

const RENEW: &str = r"
local held = redis.call('GET', KEYS[1])
if not held or string.sub(held, 1, #ARGV[1]) ~= ARGV[1] then
    return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
";

const RELEASE: &str = r"
local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 1, #ARGV[1]) == ARGV[1] then
    redis.call('DEL', KEYS[1])
end
return 1
";

/// Digits of a token: 128 bits.
const TOKEN_LENGTH: usize = 32;

/// Leases as keys that run out by themselves. The value is the holder's token, a space and the holder's description.
///
/// For efficiency only, like every lease: the server's clock may step, and a fail-over may forget a lease that is
/// held. Several servers with a vote would not change that, and nothing rests on it.
pub(super) struct RedisLeases {
    redis: Arc<Redis>,
    holder: Box<str>,
    acquire: Script,
    renew: Script,
    release: Script,
}

impl RedisLeases {
    pub(super) fn new(redis: Arc<Redis>, holder: &str) -> Self {
        Self {
            redis,
            holder: holder.into(),
            acquire: Script::new(ACQUIRE),
            renew: Script::new(RENEW),
            release: Script::new(RELEASE),
        }
    }

    fn key(&self, name: &str) -> String {
        self.redis.name(&format!("lease:{name}"))
    }
}

/// Redis counts in milliseconds and refuses zero.
fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis())
        .unwrap_or(u64::MAX)
        .clamp(1, i64::MAX as u64 / 2)
}

#[async_trait]
impl Leases for RedisLeases {
    async fn acquire(&self, name: &str, ttl: Duration) -> PortResult<Option<Lease>> {
        let token = format!("{:0TOKEN_LENGTH$x}", rand::random::<u128>());
        let mut script = self.acquire.prepare_invoke();
        script
            .key(self.key(name))
            .key(self.redis.name("fencing-token"))
            .arg(format!("{token} {}", self.holder))
            .arg(millis(ttl));
        let fencing_token: Option<u64> = self.redis.run_script("acquire a lease", &script).await?;
        Ok(fencing_token.map(|fencing_token| Lease {
            name: name.into(),
            token: token.into(),
            fencing_token,
        }))
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> PortResult<bool> {
        let mut script = self.renew.prepare_invoke();
        script
            .key(self.key(&lease.name))
            .arg(&*lease.token)
            .arg(millis(ttl));
        self.redis.run_script("renew a lease", &script).await
    }

    async fn release(&self, lease: Lease) -> PortResult<()> {
        let mut script = self.release.prepare_invoke();
        script.key(self.key(&lease.name)).arg(&*lease.token);
        self.redis.run_script("release a lease", &script).await
    }

    async fn holder(&self, name: &str) -> PortResult<Option<Box<str>>> {
        let mut command = redis::cmd("GET");
        command.arg(self.key(name));
        let held: Option<String> = self.redis.run("look at a lease", &command).await?;
        Ok(held.map(|held| held.get(TOKEN_LENGTH + 1..).unwrap_or_default().into()))
    }
}
