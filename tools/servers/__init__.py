"""Servers that tests start on loopback: Apache Kafka and NATS, fetched once to a cache by `python -m tools.servers`."""
