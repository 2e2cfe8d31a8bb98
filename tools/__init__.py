"""Tools that people and tests share: harnesses, measurements, and writers of generated pages."""
