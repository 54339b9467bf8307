//! The JobGraph: the StreamGraph after chaining, one vertex per chain.
