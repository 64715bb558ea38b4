//! Who may do what: owners and their API keys.
