"""Access control of a node: tokens, roles, rights, tickets and quotas."""
