//! Accounts against the suite of their port.

use curt_testkit::conformance::transfer::stores::AccountCopyPorts;
use curt_testkit::need;

use crate::world::fresh;

curt_testkit::accounts_tests!({
    let database = need!(fresh());
    let accounts = database.accounts();
    (database, accounts)
});

curt_testkit::account_transfer_tests!({
    let (from, to) = (need!(fresh()), need!(fresh()));
    let ports = AccountCopyPorts {
        from: from.accounts(),
        from_transfer: from.account_transfer(),
        to: to.accounts(),
        to_transfer: to.account_transfer(),
    };
    ((from, to), ports)
});
