"""Forms of input and output: files of events, filters and tables, and text for people."""
