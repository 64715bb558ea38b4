use curt_adapter_kit::Effect;
use curt_core::PortResult;

use super::Engine;
use crate::failure::failed;

impl Engine {
    /// Runs a script of several statements, with a transaction of its own in it.
    pub(crate) async fn run_script(&self, op: &'static str, script: &str) -> PortResult<()> {
        let deadline = self.background.deadline();
        let session = self.session(op, &self.background, deadline).await?;
        let until = (&*self.background, deadline);
        let work = session.batch_execute(script);
        let done = self.within(op, Effect::Unknown, until, work).await;
        match &done {
            Ok(Ok(())) => session.release(),
            // Ends the transaction with the session, whatever state it is in.
            Ok(Err(_)) => session.close(),
            Err(_) => drop(session),
        }
        done?.map_err(|error| failed(op, &self.address, Effect::Unknown, error))
    }
}
