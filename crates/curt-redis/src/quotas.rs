use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use curt_adapter_kit::reconnect::{Current, Reconnecting};
use curt_core::ports::{Bucket, QuotaReply, Quotas};
use curt_core::{Clock, ErrorKind, PortError, PortResult};
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, Script, ScriptInvocation};
use tokio::time::Instant;

use super::{BACKEND, Redis, failure};

/// How long a bucket is kept beyond the time at which it is full, as which an unknown one counts: a clock that steps
/// back by less than this makes no bucket full before its time.
const KEPT_BEYOND_FULL: Duration = Duration::from_secs(60);
/// A caller who gives up sooner says nothing about the connection: clients leave while their requests are worked on.
const SILENT_AFTER: Duration = Duration::from_millis(50);

/// What both scripts begin with. GCRA in whole numbers: `missing` is what a bucket lacks at the time `at`, in
/// milliseconds times the rule's amount, and shrinks by the amount each millisecond. Doubles hold that exactly up to
/// 2^53: a hundred million a day.
const BUCKETS: &str = r"
local now = tonumber(ARGV[1])
if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local kept, asked = tonumber(ARGV[2]), tonumber(ARGV[3])

local function whole(dividend, divisor)
    return (dividend - math.fmod(dividend, divisor)) / divisor
end

local function ceiling(dividend, divisor)
    return whole(dividend + divisor - 1, divisor)
end

local function read_bucket(number)
    local bucket = {
        amount = tonumber(ARGV[2 + 2 * number]),
        period = tonumber(ARGV[3 + 2 * number]),
        missing = 0,
    }
    bucket.capacity = bucket.amount * bucket.period
    local text = redis.call('GET', KEYS[number])
    if not text then
        return bucket
    end
    local at, missing, amount, period = string.match(text, '^(%d+) (%d+) (%d+) (%d+)$')
    at, missing, amount, period = tonumber(at), tonumber(missing), tonumber(amount), tonumber(period)
    if not at then
        return redis.error_reply('ERR ' .. KEYS[number] .. ' holds no bucket')
    end
    -- A clock that stepped back refills nothing; the bucket is written down to go on from the new time.
    bucket.is_ahead = at > now
    missing = math.max(0, missing - math.max(0, now - at) * amount)
    if amount ~= bucket.amount or period ~= bucket.period then
        -- Under a new rule, what was taken stays taken.
        missing = period > 0 and ceiling(missing, period) * bucket.period or 0
    end
    bucket.missing = math.min(missing, bucket.capacity)
    return bucket
end

local function write_bucket(number, bucket)
    if bucket.missing == 0 then
        return redis.call('DEL', KEYS[number])
    end
    local text = string.format('%.0f %.0f %.0f %.0f', now, bucket.missing, bucket.amount, bucket.period)
    local lives = string.format('%.0f', math.min(ceiling(bucket.missing, bucket.amount) + kept, 2 ^ 52))
    return redis.call('SET', KEYS[number], text, 'PX', lives)
end
";

/// Takes from all buckets or from none. Answers four numbers for each: whether it had enough, what is left, and the
/// milliseconds until it has enough (-1: never) and until it is full.
const TAKE: &str = r"
local buckets, is_granted = {}, true
for number = 1, #KEYS do
    local bucket = read_bucket(number)
    if bucket.err then
        return bucket
    end
    local wanted = bucket.missing + asked * bucket.period
    if asked > bucket.amount then
        bucket.wait = -1
    elseif wanted > bucket.capacity then
        bucket.wait = ceiling(wanted - bucket.capacity, bucket.amount)
    else
        bucket.wait, bucket.after = 0, wanted
    end
    is_granted = is_granted and bucket.wait == 0
    buckets[number] = bucket
end
local answer = {}
for number, bucket in ipairs(buckets) do
    if is_granted then
        bucket.missing = bucket.after
    end
    if bucket.is_ahead or (is_granted and asked > 0) then
        write_bucket(number, bucket)
    end
    local left = bucket.amount
    if bucket.period > 0 then
        left = whole(bucket.capacity - bucket.missing, bucket.period)
    end
    local until_full = bucket.missing > 0 and ceiling(bucket.missing, bucket.amount) or 0
    for _, value in ipairs({ bucket.wait == 0 and 1 or 0, left, bucket.wait, until_full }) do
        answer[#answer + 1] = math.min(value, 2 ^ 53)
    end
end
return answer
";

const GIVE_BACK: &str = r"
for number = 1, #KEYS do
    local bucket = read_bucket(number)
    if bucket.err then
        return bucket
    end
    if bucket.missing > 0 then
        bucket.missing = math.max(0, bucket.missing - asked * bucket.period)
        write_bucket(number, bucket)
    end
end
return 1
";

/// Buckets as keys that run out when the bucket has long been full, counted by the server's clock.
///
/// All names carry the same hash tag. One step takes from several buckets, which are of different kinds (an API key and
/// its user, an address and its site), so that no smaller tag would keep those of every request together. One server
/// counts for all: what does not fit on it is spared it by [`Quotas::take_ahead`].
pub(super) struct RedisQuotas {
    redis: Arc<Redis>,
    take: Script,
    give_back: Script,
    /// In place of the server's, for tests that set it.
    clock: Option<Arc<dyn Clock>>,
}

/// What a caller waits for. One who has given up after some time leaves a connection behind that nobody else would find
/// silent: callers who give up sooner than a command's time would use it for ever, and never find a new primary.
struct AwaitedAnswer<'a> {
    link: &'a Reconnecting<MultiplexedConnection>,
    current: &'a Current<MultiplexedConnection>,
    asked: Instant,
    is_here: bool,
}

impl Drop for AwaitedAnswer<'_> {
    fn drop(&mut self) {
        if !self.is_here && self.asked.elapsed() >= SILENT_AFTER {
            self.link.lost(self.current);
        }
    }
}

/// Numbers that answer for one bucket.
const ANSWERED: usize = 4;

impl RedisQuotas {
    pub(super) fn new(redis: Arc<Redis>, clock: Option<Arc<dyn Clock>>) -> Self {
        Self {
            redis,
            take: Script::new(&format!("{BUCKETS}{TAKE}")),
            give_back: Script::new(&format!("{BUCKETS}{GIVE_BACK}")),
            clock,
        }
    }

    /// Runs a script for a caller who may wait less than `redis.command_timeout` and give up.
    async fn run<T: FromRedisValue>(
        &self,
        op: &'static str,
        script: &ScriptInvocation<'_>,
    ) -> PortResult<T> {
        let current = self.redis.link.get(op).await?;
        let mut connection = current.connection.clone();
        let mut awaited = AwaitedAnswer {
            link: &self.redis.link,
            current: &current,
            asked: Instant::now(),
            is_here: false,
        };
        let answer = script.invoke_async(&mut connection).await;
        awaited.is_here = answer.is_ok();
        answer.map_err(|error| {
            self.redis.link.lost(&current);
            failure::of_command(op, error)
        })
    }

    fn prepare<'a>(
        &self,
        script: &'a Script,
        buckets: &[Bucket<'_>],
        amount: u64,
    ) -> ScriptInvocation<'a> {
        let mut script = script.prepare_invoke();
        let now = self.clock.as_ref().map(|clock| clock.now().0.to_string());
        script
            .arg(now.unwrap_or_default())
            .arg(millis(KEPT_BEYOND_FULL))
            .arg(amount);
        for bucket in buckets {
            script
                .key(self.redis.name(&format!("quota:{{quota}}:{}", bucket.name)))
                .arg(bucket.rule.amount)
                .arg(millis(bucket.rule.period));
        }
        script
    }
}

/// Rounded up, so that a bucket never refills faster than its rule says.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[async_trait]
impl Quotas for RedisQuotas {
    async fn take(&self, buckets: &[Bucket<'_>], amount: u64) -> PortResult<Vec<QuotaReply>> {
        const OP: &str = "take from quotas";
        if buckets.is_empty() {
            return Ok(Vec::new());
        }
        let script = self.prepare(&self.take, buckets, amount);
        let answer: Vec<i64> = self.run(OP, &script).await?;
        let (replies, rest) = answer.as_chunks::<ANSWERED>();
        if replies.len() != buckets.len() || !rest.is_empty() {
            let detail = format!("{} numbers for {} buckets", answer.len(), buckets.len());
            return Err(PortError::new(ErrorKind::Corrupt, BACKEND, OP, detail));
        }
        Ok(replies.iter().copied().map(read_reply).collect())
    }

    async fn give_back(&self, buckets: &[Bucket<'_>], amount: u64) -> PortResult<()> {
        if buckets.is_empty() {
            return Ok(());
        }
        let script = self.prepare(&self.give_back, buckets, amount);
        self.run("give back to quotas", &script).await
    }
}

fn read_reply([granted, remaining, wait, until_full]: [i64; ANSWERED]) -> QuotaReply {
    // What is no number of milliseconds is the script's "never".
    let duration = |millis: i64| u64::try_from(millis).map_or(Duration::MAX, Duration::from_millis);
    QuotaReply {
        granted: granted == 1,
        remaining: u64::try_from(remaining).unwrap_or(0),
        retry_after: duration(wait),
        reset_after: duration(until_full),
    }
}
