"""Stands in for megatron.core 0.8: names and signatures are those of that version, all else is made for tests."""
