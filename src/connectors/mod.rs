//! Sources and sinks: one folder or file per connector, their formats, and their descriptors for the catalog.
