//! The recursive inference loop.
