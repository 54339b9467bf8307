//! Dispatcher, JobMaster, ResourceManager, TaskExecutor, and the MiniCluster that runs them in one process.
