"""One broker, without I/O: messages in, messages out; and the ways to route."""
