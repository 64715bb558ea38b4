//! Accounts against the suite of their port.

use curt_testkit::need;

use crate::world::fresh;

curt_testkit::accounts_tests!({
    let database = need!(fresh());
    let accounts = database.accounts();
    (database, accounts)
});
