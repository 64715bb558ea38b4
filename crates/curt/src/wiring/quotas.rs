use std::sync::Arc;
use std::time::Duration;

use curt_accounts::SharedQuotas;
use curt_core::Clock;
use curt_core::ports::Quotas;
use curt_memory::MemoryQuotas;

/// Where limits are counted.
pub(crate) struct QuotaPorts {
    pub(crate) port: Arc<dyn Quotas>,
    /// The same where other processes count with this one.
    pub(crate) shared: Option<Arc<SharedQuotas>>,
}

impl QuotaPorts {
    pub(super) fn of_process(port: Arc<dyn Quotas>) -> Self {
        Self { port, shared: None }
    }

    /// Counts in the engine, and in this process while the engine does not answer.
    pub(super) fn shared(
        engine: Arc<dyn Quotas>,
        timeout: Duration,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let local = Arc::new(MemoryQuotas::new(Arc::clone(clock)));
        let shared = SharedQuotas::new(engine, local, timeout);
        Self {
            port: shared.clone(),
            shared: Some(shared),
        }
    }
}
