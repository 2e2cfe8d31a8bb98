"""A node without sockets and files: sessions, links, handover, replicas and recovery around a broker."""
