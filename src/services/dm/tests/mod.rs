//! Whole-kernel tests: the cartridge of the house, played.
