"""Where events go: files, subscribers, running nodes, webhooks."""
