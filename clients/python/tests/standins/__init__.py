"""Small things with the names and signatures of training frameworks that are too big to install for tests."""
