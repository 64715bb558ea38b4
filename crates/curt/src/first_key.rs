//! The API key of the first start.

use curt_accounts::ApiKeys;

/// The owner that keys belong to unless another is named.
pub(crate) const FIRST_OWNER: &str = "admin";
const FIRST_NAME: &str = "first";

/// Makes one key if there is none at all, and shows it once, on standard output.
pub(crate) async fn show_once(api_keys: &ApiKeys) -> anyhow::Result<()> {
    if !api_keys.list().await?.is_empty() {
        return Ok(());
    }
    let issued = api_keys.issue(FIRST_OWNER, FIRST_NAME, None).await?;
    println!(
        "Your API key, shown only this once:\n\n    {}\n",
        issued.token
    );
    Ok(())
}
