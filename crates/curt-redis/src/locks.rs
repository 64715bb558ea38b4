use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_core::PortResult;
use curt_core::ports::{Lease, Locks};
use redis::Script;

use super::Redis;

/// Takes a free lock. Fences are the server's time in microseconds, or one more than the last where that is not later:
/// a mere counter would start over when the data is lost or a fail-over forgets the latest.
const ACQUIRE: &str = r"
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    return false
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('GET', KEYS[2]) or 0)
local fence = string.format('%.0f', math.max(now, last + 1))
redis.call('SET', KEYS[2], fence)
return fence
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

/// Locks as keys that run out by themselves. The value is the holder's token, a space and the holder's description.
///
/// For efficiency only, like every lock here: the server's clock may step, and a fail-over may forget a lock that is
/// held. Several servers with a vote would not change that, and nothing rests on it.
pub(super) struct RedisLocks {
    redis: Arc<Redis>,
    holder: Box<str>,
    acquire: Script,
    renew: Script,
    release: Script,
}

impl RedisLocks {
    pub(super) fn new(redis: Arc<Redis>, holder: &str) -> Self {
        Self {
            redis,
            holder: holder.into(),
            acquire: Script::new(ACQUIRE),
            renew: Script::new(RENEW),
            release: Script::new(RELEASE),
        }
    }

    fn lock(&self, name: &str) -> String {
        self.redis.name(&format!("lock:{name}"))
    }
}

/// Redis counts in milliseconds and refuses zero.
fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis())
        .unwrap_or(u64::MAX)
        .clamp(1, i64::MAX as u64 / 2)
}

#[async_trait]
impl Locks for RedisLocks {
    async fn acquire(&self, name: &str, ttl: Duration) -> PortResult<Option<Lease>> {
        let token = format!("{:0TOKEN_LENGTH$x}", rand::random::<u128>());
        let mut script = self.acquire.prepare_invoke();
        script
            .key(self.lock(name))
            .key(self.redis.name("lock-fence"))
            .arg(format!("{token} {}", self.holder))
            .arg(millis(ttl));
        let fence: Option<u64> = self.redis.run_script("take a lock", &script).await?;
        Ok(fence.map(|fence| Lease {
            name: name.into(),
            token: token.into(),
            fence,
        }))
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> PortResult<bool> {
        let mut script = self.renew.prepare_invoke();
        script
            .key(self.lock(&lease.name))
            .arg(&*lease.token)
            .arg(millis(ttl));
        self.redis.run_script("renew a lock", &script).await
    }

    async fn release(&self, lease: Lease) -> PortResult<()> {
        let mut script = self.release.prepare_invoke();
        script.key(self.lock(&lease.name)).arg(&*lease.token);
        self.redis.run_script("release a lock", &script).await
    }

    async fn holder(&self, name: &str) -> PortResult<Option<Box<str>>> {
        let mut command = redis::cmd("GET");
        command.arg(self.lock(name));
        let held: Option<String> = self.redis.run("look at a lock", &command).await?;
        Ok(held.map(|held| held.get(TOKEN_LENGTH + 1..).unwrap_or_default().into()))
    }
}
