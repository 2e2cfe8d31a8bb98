"""The filter documents of the CloudEvents Subscriptions API."""
