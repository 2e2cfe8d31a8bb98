"""The formats `fieldfare_node` and `fieldfare_webhooks`, which Spark writes tables and streams with."""
