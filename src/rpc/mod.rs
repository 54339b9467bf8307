//! RPC endpoints: mailbox, gateways, fencing. Knows no job.
